"""An answer without anything in it, twice, is not a turn that is done: a script must see that."""

from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, one_after_another, result, serving
from tests.support.answers import Answer

EMPTY = Answer(text="")


@pytest.mark.parametrize("answer", [EMPTY, Answer(events=("[DONE]",)), Answer(text=" \n")])
def test_an_answer_that_is_empty_twice_ends_with_exit_code_3(
    tmp_path: Path, answer: Answer
) -> None:
    desk = Desk(tmp_path)
    with serving(one_after_another(answer)) as server:
        desk.use(server)
        done = desk.run("run", "--title", "T", "hello")
        assert (done.returncode, done.stdout.strip()) == (3, "")
        assert "local/m answered twice with nothing" in done.stderr
        assert (
            result(desk.run("run", "--title", "T", "--format", "json", "hello"))["reason"]
            == "error"
        )


def test_an_empty_answer_after_work_is_asked_again_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(one_after_another(bash("echo hi"), EMPTY, Answer(text="Said hi."))) as server:
        desk.use(server)
        done = desk.run("run", "--title", "T", "hello")
        assert (done.returncode, done.stdout) == (0, "Said hi.\n"), done.stderr
