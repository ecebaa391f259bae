"""Work trees too large or with what can't be read: no turn is blocked, what is left out is told (F22)."""

import os
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.limits import SNAPSHOT_FILE, SNAPSHOT_RETRY_TIME, SNAPSHOT_SCAN, SNAPSHOT_TIME
from tests.cli.program import COMMAND, Desk, bash, result, serving, steps, without_privileges
from tests.support.answers import Answer

FOLDERS, FILES = 500, 1_000
SLACK = 90.0
"""Seconds for the start of the program and its turn, on a machine that does other things too."""
SPACE = 20 * 1024 * 1024
"""Bytes of all our own files: contents are stored once, 500,000 rows of a table beside them."""
DONE = Answer(text="Done.")


def fill(root: Path) -> None:
    """Make 500,000 names of files; those of a folder are links of one, which is quicker to make."""
    for number in range(FOLDERS):
        folder = root / f"d{number:03}"
        folder.mkdir()
        here = os.open(folder, os.O_RDONLY)
        (folder / "f").touch()
        for name in range(FILES - 1):
            os.link("f", f"f{name:03}", src_dir_fd=here, dst_dir_fd=here)
        os.close(here)


@contextmanager
def odd_things(desk: Desk) -> Generator[set[str]]:
    """Put what a snapshot can't hold into the project; return the names that must be reported."""
    root = desk.work
    desk.git("init", "-q")
    (root / "kept.txt").write_text("kept\n")
    (root / "kept.log").write_text("ignored\n")
    (root / ".gitignore").write_text("*.log\n")
    desk.git("add", ".")
    desk.git("commit", "-q", "-m", "first")
    (root / ".git" / "index.lock").write_text("another git's")
    os.mkfifo(root / "pipe")
    with (root / "sparse").open("wb") as file:
        file.truncate(100 * 1024**3)
    (root / "loop").symlink_to("loop")
    (root / "up").symlink_to("..")
    (root / "closed").mkdir(mode=0o000)
    (root / "secret").touch(mode=0o000)
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.open(root, os.O_RDONLY)
        bound.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        yield {"pipe", "sparse", "closed", "secret", "socket"}
    (root / "closed").chmod(0o700)


def told(desk: Desk) -> dict[str, str]:
    """Return what `debug snapshot` reports as left out, and why."""
    child = desk.start("debug", "snapshot")
    out, err = child.communicate(timeout=2 * SNAPSHOT_SCAN.seconds)
    assert (child.returncode, err) == (0, "")
    rows = [line.removeprefix("left out").strip() for line in out.splitlines() if line.startswith("left out")]
    return {name: reason for name, _, reason in (row.partition(": ") for row in rows)}


def space(desk: Desk) -> int:
    """Return the size of our own files."""
    return sum(path.lstat().st_blocks * 512 for path in desk.home.rglob("*"))


@pytest.fixture
def plain(tmp_path: Path) -> Generator[Desk]:
    """A desk whose program may not read where the mode forbids it; its project goes when the test ends."""
    desk = Desk(tmp_path, wrapper=without_privileges())
    yield desk
    subprocess.run(["rm", "-rf", desk.work], check=True)


def test_what_can_not_be_held_is_listed_and_the_rest_can_be_undone(plain: Desk) -> None:
    with serving(steps(bash("echo changed > kept.txt; rm kept.log"), DONE)) as server, odd_things(plain) as names:
        plain.use(server)
        done = plain.run("run", "--auto", "--title", "T", "work")
        assert done.returncode == 0, done
        assert "Not in the snapshot: closed, pipe, secret, socket, sparse (`codeloop debug snapshot`" in done.stderr
        left = told(plain)
        assert set(left) == names
        assert left["sparse"] == f"larger than {SNAPSHOT_FILE.value:,} bytes"
        assert (left["pipe"], left["socket"]) == ("a named pipe", "a socket")
        assert left["closed"] == left["secret"] == "can't be read: Permission denied"
        assert (plain.work / "kept.txt").read_text() == "changed\n"
        assert plain.run("undo").returncode == 0
        assert (plain.work / "kept.txt").read_text() == "kept\n"
    assert (plain.work / ".git" / "index.lock").read_text() == "another git's"
    assert (plain.work / "sparse").stat().st_size == 100 * 1024**3
    assert space(plain) < SPACE


def seconds_to_look_through(folder: Path) -> float:
    """Return how long this machine takes now to look at every file once."""
    start = time.monotonic()
    for place, _, files in os.walk(folder):
        for name in files:
            os.lstat(f"{place}/{name}")
    return time.monotonic() - start


@pytest.mark.slow
def test_half_a_million_files_do_not_block_a_turn(plain: Desk) -> None:
    plain = replace(plain, limits={"SNAPSHOT_TIME": SNAPSHOT_TIME.value})  # as a user waits
    fill(plain.work)
    turn = steps(bash("echo changed > kept.txt", "c1"), bash("echo more >> kept.txt", "c2"), DONE)
    with serving(turn) as server, odd_things(plain) as names:
        plain.use(server)
        looked = seconds_to_look_through(plain.work)
        start = time.monotonic()
        done = plain.run("run", "--auto", "--format", "json", "--title", "T", "work")
        took = time.monotonic() - start
        assert result(done)["exitCode"] == 0, done
        waits = SNAPSHOT_TIME.seconds + 3 * SNAPSHOT_RETRY_TIME.seconds
        assert took < waits + SLACK + 5 * looked
        assert (plain.work / "kept.txt").read_text() == "changed\nmore\n"
        assert set(told(plain)) == names
    assert (plain.work / ".git" / "index.lock").read_text() == "another git's"
    assert space(plain) < 3 * SPACE


@pytest.mark.parametrize("place", ["home", "/"])
def test_a_home_or_everything_is_not_looked_through_and_that_is_told(plain: Desk, place: str) -> None:
    root = Path("/") if place == "/" else plain.folder
    with serving(steps(bash(f"echo x > {plain.work}/new"), DONE)) as server:
        plain.use(server)
        start = time.monotonic()
        done = plain.run("run", "--auto", "--dir", str(root), "--title", "T", "work")
        took = time.monotonic() - start
        assert done.returncode == 0, done
        assert f"there are no snapshots of {root}" in done.stderr
        assert took < SNAPSHOT_TIME.seconds + SLACK
    assert (plain.work / "new").read_text() == "x\n"
    options: dict[str, Any] = {**plain.options(), "cwd": root}
    shown = subprocess.run([*COMMAND, "debug", "snapshot"], **options, capture_output=True, text=True, check=True)
    assert f"there are no snapshots of {root}" in shown.stdout
