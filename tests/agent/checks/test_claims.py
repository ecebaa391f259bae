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
    list_claimed_exchanges,
    names_failure,
)
from codeloop.agent.checks.unfinished import (
    FAILED_CLAIM,
    list_contradictions,
    list_false_claims,
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


@pytest.mark.parametrize(
    ("kind", "text"),
    [(kind, text) for kind in ("commit", "push", "pr") for text in SENTENCES[kind]],
)
def test_what_is_claimed_of_the_repository_is_known(kind: str, text: str) -> None:
    assert kind in list_claimed_exchanges(text)


@pytest.mark.parametrize("text", SENTENCES["not exchanges"])
def test_what_is_denied_or_offered_is_no_claim(text: str) -> None:
    assert list_claimed_exchanges(text) == []


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
    (tmp_path / "work" / "test.sh").write_text("exit 0\n")
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


@pytest.mark.parametrize(
    ("command", "claim", "reason"),
    [
        ("sh test.sh", "I fixed the off-by-one in a.py.", "no file was changed"),
        ("git status", "I committed the change.", "no commit was made"),
        ("git commit -m x -- nope.py", "I've committed it as 1a2b3c4.", "no commit was made"),
    ],
)
async def test_a_claim_that_no_command_bears_out_is_remarked(
    tmp_path: Path, command: str, claim: str, reason: str
) -> None:
    call = make_answer(make_call("bash", command=command))
    words, _ = await run(tmp_path, call, ScriptedAnswer(text=claim))
    assert [reason in each for each in words] == [True]


@pytest.mark.parametrize(
    ("command", "code", "claim", "is_false"),
    [
        ("git push nowhere main", 1, "I pushed it to origin/main.", True),
        ("git push origin main", 0, "I pushed it to origin/main.", False),
        ("pytest -q", 0, "I pushed it to origin/main.", True),
        ("make release", 0, "I pushed it to origin/main.", False),
        ("gh pr create --fill", 1, "I opened a pull request.", True),
        ("gh pr create --fill", 0, "I opened a pull request.", False),
        ("git log -3", 0, "I committed the fix.", False),
        ("git checkout -- . && git clean -fdq", 0, "I committed the fix.", True),
        ("mkdir x; python3 release.py", 0, "I committed the fix.", False),
        ("pytest; python3 fix.py", 1, "I fixed the bug in a.py.", False),
        ("npm run lint:fix", 0, "I fixed the style in a.js.", False),
        ("npm test", 1, "I fixed the bug in a.js.", True),
        ("pip install nope", 1, "I installed the package nope.", True),
        ("uv add httpx", 0, "I installed the package httpx.", False),
    ],
)
def test_what_a_command_may_have_done_is_judged_by_its_exit_code(
    command: str, code: int, claim: str, *, is_false: bool
) -> None:
    parts = [bash(command, code, "x")]
    assert bool([*list_false_claims(parts, [], list_checks(parts), claim)]) == is_false


@pytest.mark.parametrize(
    ("answer", "is_false"),
    [
        ("I looked at it. `make test` passes.", True),
        ("All tests pass.", True),
        ("The build is green.", False),
        ("make test fails as before: total is 4.", False),
    ],
)
def test_a_failure_from_before_is_not_said_to_pass(answer: str, *, is_false: bool) -> None:
    failing = [bash("make test", 2, "FAIL: total: 4\nmake: *** [Makefile:2: test] Error 1")]
    parts = [*failing, bash("git stash -q"), *failing, bash("git stash pop -q"), *failing]
    assert list_checks(parts)[-1].known_before
    assert (FAILED_CLAIM in list_contradictions(parts, [], "", answer)) == is_false


async def test_a_commit_that_was_made_may_be_told(tmp_path: Path) -> None:
    made = make_answer(
        make_call("bash", command="git init -q . && git commit -q --allow-empty -m x; true")
    )
    words, _ = await run(tmp_path, made, ScriptedAnswer(text="I committed the change."))
    assert words == []


@pytest.mark.parametrize("command", ["python3 -c 'print(1)'", "sh prepare-all"])
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
