"""Undo by the real program: of destructive commands, and killed in the middle (F21, F42)."""

from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, serving, steps
from tests.support.answers import Answer

DONE = Answer(text="Done.")
QUICK = "git clean -fdxq"
COMMANDS = (
    QUICK,
    "git reset -q --hard",
    "rm -rf deep .env",
    "> staged.txt; : > edited.txt",
    "git checkout -q -- .",
)


def project(desk: Desk) -> None:
    """Make a repository with edited, staged, untracked and ignored files."""
    root = desk.work
    (root / "deep" / "er").mkdir(parents=True)
    for name in ("edited.txt", "staged.txt", "deep/er/tracked.txt"):
        (root / name).write_text("committed\n")
    (root / ".gitignore").write_text(".env\ndata\n")
    desk.git("init", "-q")
    desk.git("add", ".")
    desk.git("commit", "-q", "-m", "first")
    (root / "edited.txt").write_text("the user's own\n")
    (root / "staged.txt").write_text("the user's, staged\n")
    desk.git("add", "staged.txt")
    (root / "deep" / "untracked.txt").write_text("nowhere else\n")
    (root / ".env").write_text("KEY=secret\n")
    (root / "data").mkdir()
    (root / "data" / "run.sh").write_text("#!/bin/sh\n")
    (root / "data" / "run.sh").chmod(0o755)


def state(desk: Desk) -> dict[str, tuple[str, int]]:
    """Return every file outside of git's own folder: its text and mode."""
    paths = [path for path in desk.work.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {
        str(path.relative_to(desk.work)): (path.read_text(), path.stat().st_mode) for path in paths
    }


@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=() if each == QUICK else pytest.mark.slow) for each in COMMANDS],
)
def test_what_a_destructive_command_took_is_put_back(tmp_path: Path, command: str) -> None:
    desk = Desk(tmp_path)
    project(desk)
    before = state(desk)
    with serving(steps(bash(command), DONE)) as server:
        desk.use(server)
        assert desk.run("run", "--auto", "--title", "T", "work").returncode == 0
        after = state(desk)
        assert after != before
        history = (
            desk.git("rev-parse", "HEAD"),
            desk.git("stash", "list"),
            desk.git("ls-files", "--stage"),
        )
        undone = desk.run("undo")
        assert undone.returncode == 0, undone
        assert state(desk) == before
        assert (
            desk.git("rev-parse", "HEAD"),
            desk.git("stash", "list"),
            desk.git("ls-files", "--stage"),
        ) == history
        assert desk.run("redo").returncode == 0
        assert state(desk) == after


@pytest.mark.parametrize(
    "point",
    [
        "files.write.before:2",
        *(
            pytest.param(f"files.write.{at}", marks=pytest.mark.slow)
            for at in ("before:4", "after:3")
        ),
    ],
)
def test_an_undo_that_is_killed_is_finished_by_the_next_and_leaves_nothing_beside(
    tmp_path: Path, point: str
) -> None:
    desk = Desk(tmp_path)
    project(desk)
    before = state(desk)
    command = "for f in edited.txt staged.txt .env deep/untracked.txt; do echo agent > $f; done; echo new > new.txt"
    with serving(steps(bash(command), DONE)) as server:
        desk.use(server)
        assert desk.run("run", "--auto", "--title", "T", "work").returncode == 0
        after = state(desk)
        killed = desk.run("undo", CODELOOP_FAULT=f"{point}:kill")
        assert killed.returncode == -9, killed
        left = {
            name: what
            for name, what in state(desk).items()
            if not name.rpartition("/")[2].startswith(".codeloop-")
        }
        assert all(what in (before.get(name), after.get(name)) for name, what in left.items())
        assert set(left) <= set(before) | set(after)
        undone = desk.run("undo")
        assert undone.returncode == 0, undone
        assert state(desk) == before
