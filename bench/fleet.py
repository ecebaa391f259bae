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

from tests.cli.program import Desk, serving
from tests.support.answers import Answer

PROGRAM = [sys.executable, "-P", "-m", "codeloop"]


def main() -> None:
    """Measure both, and print jobs a second."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=20)
    options.add_argument("--at-once", type=int, default=2)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name, serving([Answer(text="Done.")]) as server:
        desk = Desk(Path(name))
        desk.use(server)
        (desk.work / "file").write_text("x\n")
        desk.git("init", "-q")
        desk.git("add", ".")
        desk.git("commit", "-qm", "start")
        where = desk.options()
        environment = {**os.environ, **where["env"]}
        clone = f"git clone -q {shlex.quote(str(desk.work))} {name}/clone{{}}"
        line = f"{clone} && {shlex.join(PROGRAM)} run --dir {name}/clone{{}} hi"
        began = time.monotonic()
        subprocess.run(
            ["xargs", "-P", str(given.at_once), "-I{}", "sh", "-c", line],
            input="\n".join(map(str, range(given.jobs))),
            text=True,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        plain = time.monotonic() - began
        table = Path(name) / "jobs.json"
        rows = [{"id": f"j{at}", "repository": str(desk.work), "prompt": "hi"} for at in range(given.jobs)]
        table.write_text(json.dumps(rows))
        began = time.monotonic()
        command = [*PROGRAM, "fleet", "run", str(table), "--at-once", str(given.at_once)]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        fleet = time.monotonic() - began
    print(f"xargs {given.jobs / plain:.2f} jobs/s, fleet {given.jobs / fleet:.2f} jobs/s")


if __name__ == "__main__":
    main()
