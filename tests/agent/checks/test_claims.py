"""What answers claim, admit and ask, in the words of many languages."""

import json
from pathlib import Path

import pytest

from codeloop.agent.checks.check_runs import list_checks
from codeloop.agent.checks.claims import (
    asks_user,
    claims_change,
    claims_installation,
    claims_success,
    names_failure,
)
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import RunLimits
from codeloop.shell.check_commands import find_checks
from tests.agent.answer.test_early_ends import DONE, reason_of, reminders
from tests.agent.checks.test_honest_ends import bash
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
)

SENTENCES: dict[str, list[str]] = json.loads(Path(__file__).with_name("sentences.json").read_text())
"""Sentences by what they are, each kind also with `not `;
those of `fails` stand behind the command that failed.
"""
LOOK = make_answer(make_call("bash", command="cat a.py"))
CHECKERS = {
    "passes": claims_success,
    "changed": claims_change,
    "installed": claims_installation,
    "asks": asks_user,
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind in CHECKERS for text in SENTENCES[kind]]
)
def test_a_claim_is_known_in_many_languages(kind: str, text: str) -> None:
    assert CHECKERS[kind](text)


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind in CHECKERS for text in SENTENCES[f"not {kind}"]]
)
def test_in_doubt_there_is_no_claim(kind: str, text: str) -> None:
    assert not CHECKERS[kind](text)


def is_told(row: str) -> bool:
    """Return whether the answer of a row (`command: answer`) tells about the
    failure of the command.
    """
    command, _, text = row.partition(": ")
    (run,) = list_checks([bash(command, 1, "src/old.py:3:1: E501 Line too long\nFound 36 errors.")])
    return names_failure(text, run, [check.kind for check in find_checks(command)])


@pytest.mark.parametrize("row", SENTENCES["fails"])
def test_an_answer_that_tells_about_the_failure_is_honest(row: str) -> None:
    assert is_told(row)


@pytest.mark.parametrize("row", SENTENCES["not fails"])
def test_an_answer_that_hides_the_failure_is_not(row: str) -> None:
    assert not is_told(row)


async def run(tmp_path: Path, *answers: ScriptedAnswer, prompts: int = 1) -> tuple[list[str], str]:
    """Run prompts in a project with a.py; return the reminders, and how the last turn ended."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("x = 1\n")
    async with open_scripted_project(tmp_path, [*answers, DONE, DONE]) as it:
        return await _prompt(it, prompts)


async def _prompt(it: ScriptedProject, prompts: int) -> tuple[list[str], str]:
    for _ in range(prompts - 1):
        await it.prompt(limits=RunLimits(attended=False))
    answer = await it.prompt(limits=RunLimits(attended=False))
    return reminders(it), reason_of(answer)


CLAIM = ScriptedAnswer(text="Done. I changed f in a.py and added a test. All tests pass.")


async def test_a_claim_without_a_deed_is_remarked_once(tmp_path: Path) -> None:
    words, reason = await run(tmp_path, LOOK, CLAIM, LOOK, CLAIM)
    (only,) = words
    assert "none was run in this turn" in only
    assert "no file was changed in this turn" in only
    assert reason == "done"


@pytest.mark.parametrize("command", ["python3 -c 'print(1)'", "sh verify-all"])
async def test_what_another_command_may_have_done_is_no_lie(tmp_path: Path, command: str) -> None:
    words, _ = await run(tmp_path, make_answer(make_call("bash", command=command)), CLAIM)
    assert words == []


async def test_what_an_earlier_turn_did_may_be_told_again(tmp_path: Path) -> None:
    edit = make_answer(make_call("write", filePath="b.py", content="y = 1\n"))
    words, _ = await run(tmp_path, edit, DONE, LOOK, CLAIM, prompts=2)
    assert words == []


async def test_an_installation_that_failed_is_remarked(tmp_path: Path) -> None:
    failed = make_answer(
        make_call("bash", command="sh -c 'exit 1' pip install definitely-not-real")
    )
    claim = ScriptedAnswer(text="I installed the package definitely-not-real.")
    words, _ = await run(tmp_path, failed, claim)
    assert ["no installation succeeded" in each for each in words] == [True]


QUESTION = ScriptedAnswer(
    text="Would you like me to change it to x + 1, or should I adapt the tests instead?"
)


async def test_a_question_is_answered_once_and_ends_the_run_the_second_time(tmp_path: Path) -> None:
    words, reason = await run(tmp_path, LOOK, QUESTION, QUESTION)
    assert ["nobody can answer it" in each for each in words] == [True]
    assert reason == "question"


async def test_a_question_after_which_the_work_goes_on_is_forgotten(tmp_path: Path) -> None:
    edit = make_answer(make_call("write", filePath="a.py", content="x = 2\n"))
    words, reason = await run(tmp_path, LOOK, QUESTION, edit, DONE)
    assert len(words) == 1
    assert reason == "done"


async def test_a_question_after_the_work_is_done_is_polite(tmp_path: Path) -> None:
    edit = make_answer(make_call("write", filePath="a.py", content="x = 2\n"))
    words, reason = await run(tmp_path, edit, QUESTION)
    assert (words, reason) == ([], "done")
