"""A fleet's throughput against xargs: the same jobs, as many at once. `python -m bench.fleet --jobs 20 --at-once 2`."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Bench
from tests.cli.program import Desk, serving
from tests.support.answers import Answer

PROGRAM = [sys.executable, "-P", "-m", "codeloop"]


JOBS, AT_ONCE = 12, 2


def fleet(bench: Bench) -> None:
    """Measure twelve jobs of one answer each, two at once, against xargs."""
    plain, ours = measure(JOBS, AT_ONCE)
    bench.put(bench.places[0], "fleet-xargs", ours / plain)
    bench.put(bench.places[0], "fleet-job", ours / JOBS * 1000)


def measure(jobs: int, at_once: int) -> tuple[float, float]:
    """Do as many jobs with xargs and with a fleet; return how many seconds each took."""
    with tempfile.TemporaryDirectory() as name, serving([Answer(text="Done.")]) as server:
        desk = Desk(Path(name))
        desk.use(server)
        (desk.work / "file").write_text("x\n")
        desk.git("init", "-q")
        desk.git("add", ".")
        desk.git("commit", "-qm", "start")
        environment = {**os.environ, **desk.options()["env"]}
        clone = f"git clone -q {shlex.quote(str(desk.work))} {name}/clone{{}}"
        line = f"{clone} && {shlex.join(PROGRAM)} run --dir {name}/clone{{}} hi"
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
        plain = time.monotonic() - began
        table = Path(name) / "jobs.json"
        rows = [{"id": f"j{at}", "repository": str(desk.work), "prompt": "hi"} for at in range(jobs)]
        table.write_text(json.dumps(rows))
        began = time.monotonic()
        command = [*PROGRAM, "fleet", "run", str(table), "--at-once", str(at_once)]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return plain, time.monotonic() - began


def main() -> None:
    """Measure both, and print jobs a second."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=20)
    options.add_argument("--at-once", type=int, default=2)
    given = options.parse_args()
    plain, ours = measure(given.jobs, given.at_once)
    print(f"xargs {given.jobs / plain:.2f} jobs/s, fleet {given.jobs / ours:.2f} jobs/s")


if __name__ == "__main__":
    main()
