"""The result of `codeloop run` says what happened to tests and which checks ran, whoever did it."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.support.answers import Answer

DONE = Answer(text="Done.")
TESTS = "def test_sum():\n    assert 1 + 2 == 3\n\n\ndef test_tax():\n    assert 100 * 19 // 100 == 20\n"
HEREDOC = "cat > tests/test_shop.py <<'EOF'\ndef test_sum():\n    assert 1 + 2 == 3\nEOF"
EDIT = "echo 'RATE = 19' > shop.py"


def shop(folder: Path) -> Desk:
    desk = Desk(folder)
    (desk.work / "tests").mkdir()
    (desk.work / "tests" / "test_shop.py").write_text(TESTS)
    (desk.work / "Makefile").write_text("test:\n\tgrep -q RATE shop.py\n")
    desk.git("init", "-q")
    desk.git("add", ".")
    desk.git("commit", "-qm", "start")
    return desk


def run(desk: Desk, *answers: Answer) -> tuple[dict[str, Any], str]:
    """Return the last line of a run, and what the model was sent with its last request."""
    with serving(steps(*answers)) as server:
        desk.use(server)
        ended = result(desk.run("run", "--format", "json", "--auto", "go"))
        return ended, server.requests[-1].body.decode()


@pytest.mark.slow
def test_a_test_that_a_command_removed_is_named_and_asked_about_once(tmp_path: Path) -> None:
    ended, sent = run(shop(tmp_path), bash(f"{EDIT}; {HEREDOC}"), bash("make test"), DONE, DONE)
    assert ended["testChanges"] == ["tests/test_shop.py::test_tax removed"]
    assert ended["message"] == "Tests changed in this run: tests/test_shop.py::test_tax removed."
    assert (ended["reason"], ended["exitCode"], ended["checks"][-1]["passed"]) == ("done", 0, True)
    assert (
        sent.count(
            "your answer does not say that tests changed (tests/test_shop.py::test_tax removed)"
        )
        == 1
    )


@pytest.mark.slow
def test_an_answer_that_names_a_removed_test_is_taken(tmp_path: Path) -> None:
    named = Answer(text="I removed test_tax, as you asked.")
    ended, sent = run(shop(tmp_path), bash(HEREDOC), named)
    assert ended["testChanges"] == ["tests/test_shop.py::test_tax removed"]
    assert "does not say that tests changed" not in sent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"), [(EDIT, "Checks: none after the last edit."), ("echo x > a.txt", "")]
)
def test_code_that_no_check_was_run_for_is_said(tmp_path: Path, command: str, message: str) -> None:
    ended, _ = run(shop(tmp_path), bash(command), DONE)
    assert (ended["message"], "checks" in ended, ended["exitCode"]) == (message, False, 0)


@pytest.mark.slow
def test_what_a_subagent_checked_and_changed_counts(tmp_path: Path) -> None:
    def choose(received: Any) -> Answer:
        text = received.body.decode()
        if '"tools"' not in text:
            return Answer(text="A title")
        if "repair the shop" in text and "hand it over" not in text:
            return DONE if "cat > tests" in text else bash(f"{EDIT}; {HEREDOC}\nmake test")
        task = call("task", description="Repair", prompt="repair the shop", subagent_type="general")
        return DONE if "task_result" in text else task

    desk = shop(tmp_path)
    with serving(choose) as server:
        desk.use(server)
        ended = result(desk.run("run", "--format", "json", "--auto", "hand it over"))
    assert ended["testChanges"] == ["tests/test_shop.py::test_tax removed"]
    assert [check["passed"] for check in ended["checks"]] == [True]


@pytest.mark.slow
def test_a_check_in_the_background_has_its_real_result(tmp_path: Path) -> None:
    start = call("bash", command="make test", run_in_background=True, description="Tests")
    read = call("bash_output", id="bash_1", wait=20_000)
    ended, _ = run(
        shop(tmp_path),
        start,
        read,
        bash("sleep 0.3"),
        read,
        Answer(text="The check fails: RATE is missing."),
    )
    (check,) = ended["checks"]
    assert (check["command"], check["exitCode"], check["failed"], check["passed"]) == (
        "make test",
        2,
        True,
        False,
    )
    assert ended["message"] == "The last check failed: make test."
