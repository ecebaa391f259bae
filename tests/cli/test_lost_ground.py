"""A turn ends, and says why, when what it stands on is gone: its folder, its database,
a disk that can be written.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Desk, call, serving
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest

pytestmark = pytest.mark.slow


def rename_folder(desk: Desk) -> None:
    desk.work.rename(desk.folder / "renamed")


def replace_folder(desk: Desk) -> None:
    rename_folder(desk)
    (desk.folder / "work").mkdir()


def remove_data(desk: Desk) -> None:
    shutil.rmtree(desk.home)


def remove_database(desk: Desk) -> None:
    (found,) = desk.home.rglob("codeloop.db")
    found.unlink()


def replace_database(desk: Desk) -> None:
    (found,) = desk.home.rglob("codeloop.db")
    shutil.copy(found, found.with_name("copy"))
    found.with_name("copy").rename(found)


def cut_database(*names: str) -> Callable[[Desk], None]:
    """Return what cuts the database, or the files beside it, to 0 bytes."""

    def cut(desk: Desk) -> None:
        (found,) = desk.home.rglob("codeloop.db")
        for name in names:
            os.truncate(found.with_name(name), 0)

    return cut


def remove_index(desk: Desk) -> None:
    next(desk.home.rglob("codeloop.db-shm")).unlink()


def run_and_lose(desk: Desk, lose: Callable[[Desk], None]) -> tuple[int, str]:
    """Run a turn of two steps; the ground is lost while the second one is asked for."""
    asked: list[ReceivedRequest] = []

    def answer(request: ReceivedRequest) -> Answer:
        asked.append(request)
        match len(asked):
            case 1:
                return call("write", filePath="first.txt", content="x\n")
            case 2:
                lose(desk)
                return call("write", filePath="second.txt", content="x\n")
            case _:
                return Answer(text="Done.")

    with serving(answer) as server:
        desk.use(server)
        ended = desk.run("run", "--auto", "--title", "T", "do it")
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("lose", "code", "message"),
    [
        (rename_folder, 5, "is not there any more: it was moved or deleted"),
        (replace_folder, 5, "is another folder now: the one that was there was moved"),
        (remove_data, 1, "codeloop.db was removed: nothing more of this session can be stored"),
        (remove_database, 1, "codeloop.db was removed: nothing more of this session can be stored"),
        (replace_database, 1, "codeloop.db is another file now: nothing more of this session"),
        (cut_database("codeloop.db"), 1, "codeloop.db was emptied by another program: nothing"),
        (cut_database("codeloop.db-wal"), 1, "codeloop.db-wal was cut by another program: nothing"),
        (remove_index, 1, "has lost codeloop.db-shm, which was removed: nothing more of this"),
        (
            cut_database("codeloop.db", "codeloop.db-wal", "codeloop.db-shm"),
            1,
            "codeloop.db was emptied by another program: nothing more of this session",
        ),
    ],
)
def test_a_turn_ends_when_its_ground_is_lost(
    tmp_path: Path, lose: Callable[[Desk], None], code: int, message: str
) -> None:
    desk = Desk(tmp_path)
    ended, text = run_and_lose(desk, lose)
    assert message in text
    assert ended == code
    assert "Traceback" not in text
    assert "a hook ended" not in text
    assert "git repository any more" not in text
    assert not list(tmp_path.rglob("second.txt"))


def test_an_index_that_was_cut_is_made_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ended, text = run_and_lose(desk, cut_database("codeloop.db-shm"))
    assert (ended, "Traceback" in text) == (0, False)
    assert list(tmp_path.rglob("second.txt"))
    assert "first.txt" in desk.run("undo", "--dry-run").stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_data_folder_that_becomes_read_only_is_told_in_words(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    def close_snapshots(desk: Desk) -> None:
        for folder in sorted(desk.home.rglob("snapshot/**/"), reverse=True):
            folder.chmod(0o500)

    ended, text = run_and_lose(desk, close_snapshots)
    assert ended == 0
    assert "can't be undone" in text
    assert "Errno" not in text
