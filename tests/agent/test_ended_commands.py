"""Commands that are past their timeout: they go on,
and the model is told of their end when it comes.
"""

import asyncio
from pathlib import Path

import pytest

from codeloop.agent import ended_commands
from codeloop.agent.checks.check_runs import CheckRun, list_checks
from codeloop.agent.checks.long_commands import takes_long
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import RunLimits
from codeloop.schema.limits import SHELL_OVERDUE
from codeloop.schema.wire import replace
from tests.support.scripted_project import (
    ScriptedProject,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

ALONE = RunLimits(attended=False)
DONE = ScriptedAnswer(text="Done.")
SLOW_TEST = "until [ -e go ]; do sleep 0.02; done; echo 'AssertionError: no'; exit 3\n"


def slow(command: str = "sh test.sh") -> ScriptedAnswer:
    """Return an answer with a command that is past its timeout as soon as it runs."""
    return make_answer(make_call("bash", "slow", command=command, timeout=1))


def checks(it: ScriptedProject) -> list[CheckRun]:
    parts = [part for entry in it.view().entries for part in entry.parts]
    return list_checks(parts, str(it.work))


def list_requests(it: ScriptedProject) -> list[str]:
    """Return the requests of the conversation, each as text."""
    return [str(request.messages) for request in it.model.requests if request.tools]


async def test_where_nobody_is_there_the_turn_waits_for_the_end_and_tells_it(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, [slow(), DONE, DONE, DONE]) as it:
        (it.work / "test.sh").write_text(SLOW_TEST)
        turn = asyncio.create_task(it.prompt(limits=ALONE))
        await wait_until(lambda: len(list_requests(it)) == 2)
        (it.work / "go").touch()
        answer = await turn
        requests = list_requests(it)
        assert "goes on in the background as bash_1" in requests[1]
        assert "bash_1 (`sh test.sh`) has ended" in requests[2]
        assert "with exit code 3" in requests[2]
        assert "AssertionError: no" in requests[2]
        (check,) = checks(it)
        assert (check.failed, check.passed, check.ended, check.exit_code) == (True, False, True, 3)
    assert answer.stop is not None
    assert not answer.stop.unended_commands


async def test_what_ends_while_the_model_works_is_told_at_the_next_step(tmp_path: Path) -> None:
    end = make_answer(
        make_call(
            "bash", "go", command="touch go; until [ -e passed ]; do sleep 0.02; done; sleep 0.5"
        )
    )
    async with open_scripted_project(tmp_path, [slow(), end, DONE, DONE]) as it:
        (it.work / "test.sh").write_text("until [ -e go ]; do sleep 0.02; done; touch passed\n")
        await it.prompt(limits=ALONE)
        told = [text for text in list_requests(it) if "bash_1 (`sh test.sh`) has ended" in text]
        assert "with exit code 0" in told[0]
        (check,) = checks(it)
        assert (check.failed, check.passed) == (False, True)
        # Told once: no reminder follows it.
        assert told[-1].count("has ended") == 1


async def test_what_is_not_waited_for_any_longer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_commands, "SHELL_OVERDUE", replace(SHELL_OVERDUE, value=1))
    named = ScriptedAnswer(text="The tests did not end here.")
    async with open_scripted_project(tmp_path, [slow(), named, DONE]) as it:
        (it.work / "test.sh").write_text(SLOW_TEST)
        answer = await it.prompt(limits=ALONE)
        assert answer.stop is not None
        assert answer.stop.unended_commands == ("sh test.sh",)
        assert answer.stop.reason == "done"
        (check,) = checks(it)
        assert (check.failed, check.passed, check.ended) == (False, False, False)
        # The answer says it: nothing is left to be reminded of.
        assert len(list_requests(it)) == 2


async def test_where_a_user_is_there_the_turn_ends_and_goes_on_with_the_end(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [slow(), DONE, ScriptedAnswer(text="It failed.")]
    ) as it:
        (it.work / "test.sh").write_text(SLOW_TEST)
        await it.prompt()
        assert not it.project.runs.is_running(it.session_id)
        (it.work / "go").touch()
        await wait_until(
            lambda: len(list_requests(it)) == 3 and not it.project.runs.is_running(it.session_id)
        )
        assert "with exit code 3" in list_requests(it)[2]


async def test_an_aborted_turn_is_not_woken(tmp_path: Path) -> None:
    wait = make_answer(make_call("bash", "wait", command="touch begun; sleep 600"))
    async with open_scripted_project(tmp_path, [slow(), wait, DONE]) as it:
        (it.work / "test.sh").write_text(SLOW_TEST)
        turn = asyncio.create_task(it.prompt())
        await wait_until((it.work / "begun").exists)
        await it.project.runs.abort(it.session_id)
        await turn
        (it.work / "go").touch()
        (job,) = it.project.workspace.shells.jobs.list_jobs()
        await job.wait_for_end()
        assert not it.project.runs.is_running(it.session_id)
        # The next prompt tells it.
        await it.prompt("and?")
        assert "with exit code 3" in list_requests(it)[-1]


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q",
        "npm ci && npm test",
        "cd web; pnpm -r install",
        "yarn",
        "python3 -m pip install -e .",
        "CI=1 uv sync --all-extras",
        "sudo apt-get -y install gcc",
        "cmake --build build",
        "make -j4",
        "cargo build --release",
        "bundle install",
        "docker compose up -d",
        "./gradlew assemble",
        "git clone https://example.org/a.git",
    ],
)
def test_builds_tests_and_installations_take_long(line: str) -> None:
    assert takes_long(line)


@pytest.mark.parametrize(
    "line",
    ["sleep 300", "python3 serve.py", "npm run dev", "npm ls", "yarn why x", "ls make", "rg pip"],
)
def test_other_lines_do_not(line: str) -> None:
    assert not takes_long(line)
