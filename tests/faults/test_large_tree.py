"""Work trees too large or with what can't be read: no turn is blocked,
what is left out is told (F22).
"""

import os
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.limits import SNAPSHOT_FILE
from tests.cli.program import COMMAND, HANGING, Desk, bash, serving, steps, without_privileges
from tests.support.answers import Answer

SPACE = 20 * 1024 * 1024
"""Bytes of all our own files: contents are stored once, 500,000 rows of a table beside them."""
DONE = Answer(text="Done.")


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
    out, err = child.communicate(timeout=HANGING)
    assert (child.returncode, err) == (0, "")
    rows = [
        line.removeprefix("left out").strip()
        for line in out.splitlines()
        if line.startswith("left out")
    ]
    return {name: reason for name, _, reason in (row.partition(": ") for row in rows)}


def space(desk: Desk) -> int:
    """Return the size of our own files."""
    return sum(path.lstat().st_blocks * 512 for path in desk.home.rglob("*"))


@pytest.fixture
def plain(tmp_path: Path) -> Generator[Desk]:
    """A desk whose program may not read where the mode forbids it;
    its project goes when the test ends.
    """
    desk = Desk(tmp_path, wrapper=without_privileges())
    yield desk
    subprocess.run(["rm", "-rf", desk.work], check=True)


def test_what_can_not_be_held_is_listed_and_the_rest_can_be_undone(plain: Desk) -> None:
    with (
        serving(steps(bash("echo changed > kept.txt; rm kept.log"), DONE)) as server,
        odd_things(plain) as names,
    ):
        plain.use(server)
        done = plain.run("run", "--auto", "--title", "T", "work")
        assert done.returncode == 0, done
        assert (
            "Not in the snapshot: closed, pipe, secret, socket, sparse (`codeloop debug snapshot`"
            in done.stderr
        )
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


def fill_with(root: Path, files: int, *, is_git: bool) -> None:
    """Make files of their own, 100 to a folder, and a commit of them."""
    for folder in range(files // 100):
        place = root / f"d{folder // 50}" / f"e{folder}"
        place.mkdir(parents=True)
        here = os.open(place, os.O_RDONLY)
        for number in range(100):
            file = os.open(f"f{number}", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here)
            os.write(file, b"%d\n" % (folder * 100 + number))
            os.close(file)
        os.close(here)
    if is_git:
        # So many loose objects would start a cleaning in the background,
        # which goes on while the tree is removed.
        who = (
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "gc.auto=0",
            "-c",
            "maintenance.auto=false",
        )
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
            subprocess.run(["git", *who, *words], cwd=root, check=True)


@pytest.mark.parametrize(
    ("files", "is_git"),
    [
        (20_000, False),
        pytest.param(20_000, True, marks=pytest.mark.slow),
        pytest.param(100_000, True, marks=pytest.mark.slow),
        pytest.param(100_000, False, marks=pytest.mark.slow),
        pytest.param(300_000, True, marks=pytest.mark.slow),
        pytest.param(300_000, False, marks=pytest.mark.slow),
    ],
)
def test_what_a_command_changes_in_a_large_tree_can_be_undone_from_the_first_run_on(
    plain: Desk, files: int, is_git: bool
) -> None:
    (plain.work / "calc.py").write_text("one\n")
    fill_with(plain.work, files, is_git=is_git)
    created = files // 30
    command = (
        f"echo two >> calc.py; rm d0/e1/f7; mkdir new; cd new; seq {created} | split -l 1 -a 3 - n"
    )
    with serving(steps(bash(command), DONE)) as server:
        plain.use(server)
        done = plain.run("run", "--auto", "--title", "T", "work")
        assert (done.returncode, "undo" in done.stderr) == (0, False), done
        assert len(list((plain.work / "new").iterdir())) == created
        undone = plain.run("undo")
        assert undone.returncode == 0, undone.stderr[-2000:]
        assert "Undone: “work”" in undone.stdout
    assert (plain.work / "calc.py").read_text() == "one\n"
    assert (plain.work / "d0/e1/f7").read_text() == "107\n"
    assert not (plain.work / "new").exists()


@pytest.mark.parametrize("place", ["home", "/"])
def test_a_home_or_everything_is_not_looked_through_and_that_is_told(
    plain: Desk, place: str
) -> None:
    root = Path("/") if place == "/" else plain.folder
    with serving(steps(bash(f"echo x > {plain.work}/new"), DONE)) as server:
        plain.use(server)
        done = plain.run("run", "--auto", "--dir", str(root), "--title", "T", "work")
        assert done.returncode == 0, done
        assert f"there are no snapshots of {root}" in done.stderr
    assert (plain.work / "new").read_text() == "x\n"
    options: dict[str, Any] = {**plain.options(), "cwd": root}
    shown = subprocess.run(
        [*COMMAND, "debug", "snapshot"], **options, capture_output=True, text=True, check=True
    )
    assert f"there are no snapshots of {root}" in shown.stdout
