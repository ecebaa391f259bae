"""Sessions and their undo stay with their folder: over its first commit, without its repository,
after a move.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.program import Desk, call, one_after_another, serving
from tests.support.answers import Answer

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Place(Desk):
    """A desk that works in another directory, with the same home."""

    place: Path = Path()

    @property
    def work(self) -> Path:
        return self.place


def place(desk: Desk, name: str) -> Place:
    (desk.folder / name).mkdir(exist_ok=True)
    return Place(desk.folder, place=desk.folder / name)


def write(path: str) -> Answer:
    return call("write", filePath=path, content="new\n")


def list_ids(desk: Desk) -> list[str]:
    return [each["id"] for each in json.loads(desk.run("session", "list", "--json").stdout)]


def commit(desk: Desk) -> None:
    desk.git("add", "-A")
    desk.git("commit", "-q", "--allow-empty", "-m", "first")


def undo_twice(desk: Desk) -> None:
    for _ in range(2):
        undone = desk.run("undo")
        assert undone.returncode == 0, undone.stderr + undone.stdout


def first_commit(desk: Desk) -> None:
    commit(desk)


def begin_repository(desk: Desk) -> None:
    desk.git("init", "-q")
    commit(desk)


def lose_repository(desk: Desk) -> None:
    shutil.rmtree(desk.work / ".git")


def begin_anew(desk: Desk) -> None:
    shutil.rmtree(desk.work / ".git")
    begin_repository(desk)


def rewrite_history(desk: Desk) -> None:
    desk.git("commit", "-q", "--amend", "--allow-empty", "-m", "another root")
    shutil.rmtree(desk.home / "cache")


def unborn(desk: Desk) -> None:
    desk.git("init", "-q")


def nothing(_desk: Desk) -> None:
    pass


@pytest.mark.parametrize(
    ("prepare", "change"),
    [
        (unborn, first_commit),
        (nothing, unborn),
        (nothing, begin_repository),
        (begin_repository, lose_repository),
        (begin_repository, begin_anew),
        (begin_repository, rewrite_history),
    ],
)
def test_sessions_and_undo_stay_when_the_project_of_a_folder_gets_another_id(
    tmp_path: Path, prepare: Callable[[Desk], None], change: Callable[[Desk], None]
) -> None:
    desk = Desk(tmp_path)
    prepare(desk)
    with serving(
        one_after_another(write("new.txt"), Answer(text="Done."), Answer(text="More."))
    ) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "do it").returncode == 0
        (before,) = list_ids(desk)
        change(desk)
        assert list_ids(desk) == [before]
        went_on = desk.run("run", "--continue", "go on")
        assert (went_on.returncode, went_on.stdout) == (0, "More.\n"), went_on.stderr
        assert list_ids(desk) == [before]
        everywhere = json.loads(desk.run("session", "list", "--all", "--json").stdout)
        assert [each["id"] for each in everywhere] == [before]
        assert (desk.work / "new.txt").exists()
        undo_twice(desk)
        assert not (desk.work / "new.txt").exists()


@pytest.mark.parametrize("prepare", [nothing, begin_repository])
def test_a_renamed_folder_keeps_its_sessions_and_their_undo(
    tmp_path: Path, prepare: Callable[[Desk], None]
) -> None:
    desk = Desk(tmp_path)
    prepare(desk)
    with serving(
        one_after_another(write("new.txt"), Answer(text="Done."), Answer(text="More."))
    ) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "do it").returncode == 0
        (before,) = list_ids(desk)
        (tmp_path / "work").rename(tmp_path / "renamed")
        renamed = place(desk, "renamed")
        went_on = renamed.run("run", "--continue", "go on")
        assert (went_on.returncode, went_on.stdout) == (0, "More.\n"), went_on.stderr
        assert f"of {tmp_path}/work go on here" in went_on.stderr
        assert list_ids(renamed) == [before]
        undo_twice(renamed)
        assert not (renamed.work / "new.txt").exists()
        redone = renamed.run("redo")
        assert redone.returncode == 0, redone.stderr
        assert (renamed.work / "new.txt").exists()


@pytest.mark.parametrize("prepare", [nothing, begin_repository])
def test_a_folder_that_left_a_link_to_another_disk_keeps_its_sessions(
    tmp_path: Path, prepare: Callable[[Desk], None]
) -> None:
    desk = Desk(tmp_path)
    prepare(desk)
    with serving(
        one_after_another(write("new.txt"), Answer(text="Done."), Answer(text="More."))
    ) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "do it").returncode == 0
        (before,) = list_ids(desk)
        shutil.copytree(tmp_path / "work", tmp_path / "disk", symlinks=True)
        shutil.rmtree(tmp_path / "work")
        (tmp_path / "work").symlink_to("disk")
        went_on = desk.run("run", "--continue", "go on")
        assert (went_on.returncode, went_on.stdout) == (0, "More.\n"), went_on.stderr
        assert list_ids(place(desk, "disk")) == [before]
        undo_twice(desk)
        assert not (tmp_path / "disk" / "new.txt").exists()


def test_in_doubt_the_command_is_named_that_takes_the_sessions_of_a_gone_folder_over(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    begin_repository(desk)
    with serving(
        one_after_another(write("new.txt"), Answer(text="Done."), Answer(text="More."))
    ) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "do it").returncode == 0
        (before,) = list_ids(desk)
        # As by a copy to another disk: nothing but the history is the same.
        shutil.copytree(tmp_path / "work", tmp_path / "copy", symlinks=True)
        copy = place(desk, "copy")
        there = copy.run("session", "adopt", str(tmp_path / "work"))
        assert there.returncode == 1
        assert "is still there" in there.stderr
        shutil.rmtree(tmp_path / "work")
        command = f"codeloop session adopt {tmp_path}/work"
        for words in (
            ["run", "--continue", "go on"],
            ["undo"],
            ["run", "--session", before, "go on"],
        ):
            refused = copy.run(*words)
            assert refused.returncode == 2, words
            assert command in refused.stderr, refused.stderr
        adopted = copy.run("session", "adopt", str(tmp_path / "work"))
        assert adopted.returncode == 0, adopted.stderr
        assert before in adopted.stdout
        went_on = copy.run("run", "--continue", "go on")
        assert (went_on.returncode, went_on.stdout) == (0, "More.\n"), went_on.stderr
        undo_twice(copy)
        assert not (copy.work / "new.txt").exists()


def test_a_clone_of_the_same_remote_finds_the_sessions_of_a_clone_that_is_gone(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    origin = place(desk, "origin")
    begin_repository(origin)
    origin.git("commit", "-q", "--allow-empty", "-m", "second")
    source = f"file://{origin.work}"
    origin.git("clone", "-q", source, str(tmp_path / "work"))
    with serving(one_after_another(Answer(text="Done."))) as server:
        desk.use(server)
        assert desk.run("run", "--title", "T", "do it").returncode == 0
        shutil.rmtree(tmp_path / "work")
        # A shallow clone has another root commit, so another project.
        origin.git("clone", "-q", "--depth", "1", source, str(tmp_path / "again"))
        again = place(desk, "again")
        refused = again.run("run", "--continue", "go on")
        assert refused.returncode == 2
        assert f"codeloop session adopt {tmp_path}/work" in refused.stderr
        assert again.run("session", "adopt", str(tmp_path / "work")).returncode == 0
        assert len(list_ids(again)) == 1


def test_other_folders_keep_their_sessions(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    other = place(desk, "other")
    with serving(one_after_another(Answer(text="Done."), Answer(text="Done."))) as server:
        desk.use(server)
        for each in (desk, other):
            assert each.run("run", "--title", "T", "do it").returncode == 0
        begin_repository(desk)
        assert len(list_ids(desk)) == 1
        assert len(list_ids(other)) == 1
        assert list_ids(desk) != list_ids(other)


def test_a_repository_around_a_folder_takes_its_sessions_with_their_undo_over(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    inner = Place(desk.folder, place=desk.work / "inner")
    inner.work.mkdir()
    with serving(one_after_another(write("new.txt"), Answer(text="Done."))) as server:
        desk.use(server)
        assert inner.run("run", "--title", "T", "do it").returncode == 0
        (before,) = list_ids(inner)
        begin_repository(desk)
        assert list_ids(inner) == [before]
        undone = inner.run("undo")
        assert undone.returncode == 0, undone.stderr + undone.stdout
        assert not (inner.work / "new.txt").exists()
