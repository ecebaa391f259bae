"""A session belongs to a directory: commands without a name take this directory's,
and undo works nowhere else.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.program import Desk, call, result, serving, steps
from tests.support.answers import Answer


@dataclass(frozen=True)
class Side(Desk):
    """A desk that works in another directory, with the same home."""

    place: Path = Path()

    @property
    def work(self) -> Path:
        return self.place


def side(desk: Desk, name: str) -> Side:
    return Side(desk.folder, place=desk.folder / name)


def worktrees(desk: Desk) -> tuple[Side, Side]:
    desk.git("init", "-q")
    desk.git("commit", "-q", "--allow-empty", "-m", "x")
    desk.git("worktree", "add", "-q", "../other")
    return side(desk, "work"), side(desk, "other")


def clones(desk: Desk) -> tuple[Side, Side]:
    desk.git("init", "-q")
    desk.git("commit", "-q", "--allow-empty", "-m", "x")
    desk.git("clone", "-q", ".", "../other")
    return side(desk, "work"), side(desk, "other")


def folders(desk: Desk) -> tuple[Side, Side]:
    (desk.folder / "other").mkdir()
    return side(desk, "work"), side(desk, "other")


def subdirectory(desk: Desk) -> tuple[Side, Side]:
    desk.git("init", "-q")
    desk.git("commit", "-q", "--allow-empty", "-m", "x")
    (desk.work / "sub").mkdir()
    return side(desk, "work"), side(desk, "work/sub")


def write(name: str) -> Answer:
    return call("write", filePath=name, content="new\n")


NAMELESS = [
    ("undo",),
    ("undo", "--dry-run"),
    ("redo",),
    ("session", "compact"),
    ("session", "fork"),
    ("session", "show"),
    ("session", "pin", "--at", "1"),
    ("export",),
    ("run", "--continue", "go on"),
]


@pytest.mark.parametrize("laid_out", [worktrees, clones, folders, subdirectory])
def test_commands_without_a_name_refuse_and_name_what_belongs_elsewhere(
    tmp_path: Path, laid_out: Callable[[Desk], tuple[Side, Side]]
) -> None:
    desk = Desk(tmp_path)
    desk.work.mkdir(exist_ok=True)
    a, b = laid_out(desk)
    with serving(steps(write("new.txt"), Answer(text="Done."))) as server:
        desk.use(server)
        session = result(a.run("run", "--auto", "--format", "json", "--title", "One", "go"))[
            "sessionID"
        ]
        requests = len(server.requests)
        for words in NAMELESS:
            done = b.run(*words)
            assert (done.returncode, done.stdout) == (2, ""), words
            assert session in done.stderr, words
            assert f"belongs to {a.work}" in done.stderr, words
        assert len(server.requests) == requests
    given = b.run("undo", "--session", session)
    assert (given.returncode, given.stdout) == (2, "")
    assert f"belongs to {a.work}, not to {b.work}" in given.stderr
    assert b.run("redo", "--session", session).returncode == 2
    assert str(a.work) in b.run("session", "list", "--all").stdout
    assert str(a.work) not in a.run("session", "list").stdout
    assert (a.work / "new.txt").exists()
    assert a.run("undo").returncode == 0
    assert not (a.work / "new.txt").exists()


@pytest.mark.parametrize("laid_out", [worktrees, folders])
def test_each_directory_undoes_its_own_turn(
    tmp_path: Path, laid_out: Callable[[Desk], tuple[Side, Side]]
) -> None:
    desk = Desk(tmp_path)
    desk.work.mkdir(exist_ok=True)
    a, b = laid_out(desk)
    with serving(steps(write("new.txt"), Answer(text="Done."))) as server:
        desk.use(server)
        for each in (a, b):
            assert each.run("run", "--auto", "--title", each.work.name, "go").returncode == 0
    shown = a.run("session", "list", "--all").stdout
    assert (str(a.work) in shown, str(b.work) in shown) == (True, True)
    assert json.loads(a.run("export").stdout)["info"]["directory"] == str(a.work)
    assert "new.txt" in a.run("undo").stdout
    assert ((a.work / "new.txt").exists(), (b.work / "new.txt").exists()) == (False, True)
    assert "new.txt" in b.run("undo").stdout
    assert not (b.work / "new.txt").exists()
    assert a.run("redo").returncode == 0
    assert ((a.work / "new.txt").exists(), (b.work / "new.txt").exists()) == (True, False)


def test_a_link_to_the_directory_is_the_directory(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "link").symlink_to(desk.work)
    with serving(steps(write("new.txt"), Answer(text="Done."))) as server:
        desk.use(server)
        assert desk.run("run", "--auto", "--title", "One", "go").returncode == 0
        done = side(desk, "link").run("undo", PWD=str(tmp_path / "link"))
    assert (done.returncode, done.stderr) == (0, "")
    assert not (desk.work / "new.txt").exists()


def test_a_session_goes_on_elsewhere_only_as_a_copy(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    a, b = worktrees(desk)
    with serving(steps(write("new.txt"), Answer(text="Done."))) as server:
        desk.use(server)
        session = result(a.run("run", "--auto", "--format", "json", "--title", "One", "go"))[
            "sessionID"
        ]
        refused = b.run("run", "--session", session, "again")
        assert refused.returncode == 2
        assert str(a.work) in refused.stderr
        copy = result(
            b.run("run", "--auto", "--format", "json", "--session", session, "--fork", "again")
        )
    assert copy["exitCode"] == 0
    assert json.loads(b.run("export").stdout)["info"]["directory"] == str(b.work)
    assert b.run("undo").returncode == 0
    assert ((a.work / "new.txt").exists(), (b.work / "new.txt").exists()) == (True, False)
    # The turn that the copy brought along changed files of the other work tree.
    copied = b.run("undo")
    assert copied.returncode == 1
    assert f"skipped  {a.work}/new.txt" in copied.stderr
    assert (a.work / "new.txt").exists()


def test_a_session_of_another_project_is_named_with_its_directory(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "other").mkdir()
    other = side(desk, "other")
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        session = result(desk.run("run", "--format", "json", "--title", "One", "go"))["sessionID"]
    other.git("init", "-q")
    other.git("commit", "-q", "--allow-empty", "-m", "x")
    for words in [("undo", "-s", session), ("session", "show", session[-6:])]:
        done = other.run(*words)
        assert done.returncode == 2
        assert f"{session} belongs to {desk.work}" in done.stderr


def test_without_a_repository_each_directory_lists_searches_and_counts_its_own(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    desk.work.mkdir(exist_ok=True)
    a, b = folders(desk)
    with serving(steps(Answer(text="Done."))) as server:
        desk.use(server)
        mine = result(a.run("run", "--format", "json", "--title", "One", "go"))["sessionID"]
        theirs = result(b.run("run", "--format", "json", "--title", "Two", "go"))["sessionID"]
        for here, own, other in ((a, mine, theirs), (b, theirs, mine)):
            listed = here.run("session", "list").stdout
            assert own in listed
            assert other not in listed
            found = here.run("session", "search", "go").stdout
            assert own in found
            assert other not in found
            assert json.loads(here.run("stats", "--json").stdout)["total"]["sessions"] == 1
            assert json.loads(here.run("stats", "--json", "--all").stdout)["total"]["sessions"] == 2
            everything = here.run("session", "list", "--all").stdout
            assert own in everything
            assert other in everything
