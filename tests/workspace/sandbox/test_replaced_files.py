"""A sandbox is made although other programs replace files of it meanwhile, as editors,
direnv and installers do.
"""

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.workspace.sandbox.conftest import SECRET, Attacked

REPLACE = """
import itertools, os, sys, time
for number in itertools.count():
    path = f"{sys.argv[1]}/d{number % 30}/.env"
    with open(path + ".new", "w") as file:
        file.write(sys.argv[2])
    os.replace(path + ".new", path)
    if number == 30:
        print("ready", flush=True)
    time.sleep(float(sys.argv[3]) if number > 30 else 0)
"""


@contextmanager
def replacing(root: Path, pause: float) -> Generator[None, None, None]:
    """Replace hidden files of a project by a process of its own, one after each pause (s)."""
    for number in range(30):
        (root / f"d{number}").mkdir()
    command = [sys.executable, "-c", REPLACE, str(root), SECRET, str(pause)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline()
            yield
        finally:
            program.kill()


@pytest.mark.slow
async def test_hidden_files_may_be_replaced_while_a_sandbox_is_made(it: Attacked) -> None:
    pause = 0.002
    if it.backend == "bubblewrap":
        # It is slow to start, and one of them must not be replaced in each start.
        start = time.monotonic()
        (it.root / ".env").write_text(SECRET)
        await it.run("true")
        pause = 3 * (time.monotonic() - start)
    with replacing(it.root, pause):
        for number in range(10):
            (it.root / f"new{number}").mkdir()
            (it.root / f"new{number}/.env").write_text(SECRET)
            outcome = await it.run(f"echo works; cat new{number}/.env")
            assert outcome.output.startswith("works")
            assert it.backend == "landlock" or SECRET not in outcome.output
