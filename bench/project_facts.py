"""Measures how long the facts about a large project take,
which a session puts into its system prompt.
"""

import os
import statistics
import subprocess
import time

from bench.bench_run import BenchRun
from bench.trajectories import make_project
from codeloop.workspace.project_facts import describe_project

FILE_COUNT = 50_000
PACKAGE_PADDING_BYTES = 10_000_000
GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost")


def measure_project_facts(bench: BenchRun) -> None:
    """Measure the CPU of this process for a project with 50,000 files at its top
    and a huge package.json.
    """
    folder = bench.folder / "facts"
    folder.mkdir()
    make_project(folder)
    for number in range(FILE_COUNT):
        (folder / f"file-{number}").touch()
    (folder / "package.json").write_text(
        '{"scripts": {"test": "x"}, "pad": "' + "x" * PACKAGE_PADDING_BYTES + '"}'
    )
    for command in (
        ("init", "--quiet"),
        ("add", "shop", "Makefile"),
        ("commit", "--quiet", "--message", "start"),
    ):
        subprocess.run([*GIT, *command], cwd=folder, check=True)
    times: list[float] = []
    for _ in range(max(bench.rounds, 3)):
        start = time.process_time()
        describe_project(folder, folder, os.environ)
        times.append((time.process_time() - start) * 1000)
    bench.put_own("facts", statistics.median(times))
