"""The folder of a session is moved, deleted or replaced while it runs: nothing is made elsewhere,
and the turn ends.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, call, serving
from tests.support.answers import Answer
from tests.support.http_connection import ReceivedRequest


def delete(desk: Desk) -> None:
    shutil.rmtree(desk.folder / "work")


def move(desk: Desk) -> None:
    (desk.folder / "work").rename(desk.folder / "moved")


def replace(desk: Desk) -> None:
    move(desk)
    (desk.folder / "work").mkdir()


def put_file(desk: Desk) -> None:
    move(desk)
    (desk.folder / "work").write_text("a file\n")


@pytest.mark.parametrize(
    "next_call", [call("write", filePath="c.txt", content="c\n"), bash("touch c.txt")]
)
@pytest.mark.parametrize("change", [delete, move, replace, put_file])
def test_a_turn_ends_where_its_folder_is_gone(
    tmp_path: Path, change: Callable[[Desk], None], next_call: Answer
) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a.txt").write_text("a\n")
    requests: list[ReceivedRequest] = []

    def answer(received: ReceivedRequest) -> Answer:
        requests.append(received)
        if len(requests) == 2:
            change(desk)
        return (
            call("write", filePath="b.txt", content="b\n", call_id="c1")
            if len(requests) == 1
            else next_call
        )

    with serving(answer) as server:
        desk.use(server)
        done = desk.run("run", "--title", "T", "do it")
    work = tmp_path / "work"
    assert done.returncode == 5, done.stderr
    assert f"{work} is " in done.stderr
    assert "Put it back, or start codeloop where it is now." in done.stderr
    assert "unexpectedly" not in done.stderr
    assert len(requests) == 2
    assert not work.is_dir() or not any(work.iterdir())


def test_a_folder_that_is_put_back_is_worked_in_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "a.txt").write_text("a\n")
    requests: list[ReceivedRequest] = []

    def answer(received: ReceivedRequest) -> Answer:
        requests.append(received)
        if len(requests) == 1:
            move(desk)
            (tmp_path / "moved").rename(tmp_path / "work")
            return call("read", filePath="a.txt")
        return Answer(text="Done.")

    with serving(answer) as server:
        desk.use(server)
        done = desk.run("run", "--title", "T", "do it")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
