"""Measures the throughput of a fleet against xargs, which does the same jobs, as many at once.

As a program: `python -m bench.fleet --jobs 20 --at-once 2`.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time

from bench.bench_run import BenchRun
from codeloop.kit.remove_tree import temporary_folder
from tests.cli.program import Desk, serving
from tests.support.answers import Answer

CODELOOP_COMMAND = [sys.executable, "-P", "-m", "codeloop"]
JOB_COUNT, CONCURRENT_JOBS = 12, 2


def measure_fleet(bench: BenchRun) -> None:
    """Measure twelve jobs of one answer each, two at once, against xargs."""
    xargs_seconds, fleet_seconds = time_both(JOB_COUNT, CONCURRENT_JOBS)
    bench.put_own("fleet-xargs", fleet_seconds / xargs_seconds)
    bench.put_own("fleet-job", fleet_seconds / JOB_COUNT * 1000)


def time_both(jobs: int, at_once: int) -> tuple[float, float]:
    """Do `jobs` jobs with xargs and with a fleet; return the seconds of each."""
    with temporary_folder() as folder, serving([Answer(text="Done.")]) as server:
        desk = Desk(folder)
        desk.use(server)
        (desk.work / "file").write_text("x\n")
        desk.git("init", "-q")
        desk.git("add", ".")
        desk.git("commit", "-qm", "start")
        environment = {**os.environ, **desk.options()["env"]}
        # A fleet gives each job a clone of its repository, so xargs has to do the same.
        clone = f"git clone -q {shlex.quote(str(desk.work))} {folder}/clone{{}}"
        line = f"{clone} && {shlex.join(CODELOOP_COMMAND)} run --dir {folder}/clone{{}} hi"
        began = time.monotonic()
        subprocess.run(
            ["xargs", "-P", str(at_once), "-I{}", "sh", "-c", line],
            input="\n".join(map(str, range(jobs))),
            text=True,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        xargs_seconds = time.monotonic() - began
        table = folder / "jobs.json"
        rows = [
            {"id": f"j{number}", "repository": str(desk.work), "prompt": "hi"}
            for number in range(jobs)
        ]
        table.write_text(json.dumps(rows))
        began = time.monotonic()
        command = [*CODELOOP_COMMAND, "fleet", "run", str(table), "--at-once", str(at_once)]
        subprocess.run(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return xargs_seconds, time.monotonic() - began


def main() -> None:
    """Measure both, and print the jobs per second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=2)
    options = parser.parse_args()
    xargs_seconds, fleet_seconds = time_both(options.jobs, options.at_once)
    print(
        f"xargs {options.jobs / xargs_seconds:.2f} jobs/s, fleet {options.jobs / fleet_seconds:.2f} jobs/s"
    )


if __name__ == "__main__":
    main()
