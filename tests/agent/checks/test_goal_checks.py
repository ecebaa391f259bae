"""What becomes of a goal's check that could not be run."""

from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.checks.check_runs import is_goal_check
from codeloop.agent.goal.check_runner import run_and_store_checks
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.errors import HookRefused
from codeloop.schema.part import ToolStateError
from codeloop.schema.wire import JSON
from tests.support.recording_handler import RecordingHandler, open_hooked_project
from tests.support.scripted_project import open_scripted_project


async def test_a_check_that_can_not_be_started_is_marked_and_was_not_forbidden(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as it:
        await it.prompt()
        (check,) = await run_and_store_checks(
            it.project.engine, it.session_id, [" "], is_from_user=True
        )
        assert it.calls() == [check]
    assert isinstance(check.state, ToolStateError)
    assert is_goal_check(check)
    assert "denied" not in (check.state.metadata or {})


async def test_a_check_whose_question_ends_the_turn_is_not_left_running(tmp_path: Path) -> None:
    def end_turn(_given: JSON, _output: JSON) -> JSON:
        raise HookRefused("It is late.", ends=True)

    handler = RecordingHandler({"permission.ask": end_turn})
    asks: dict[str, Any] = {"permission": {"bash": "ask"}, "profile": "ask"}
    async with open_hooked_project(tmp_path, [ScriptedAnswer(text="Done.")], handler, **asks) as it:
        await it.prompt()
        with pytest.raises(HookRefused):
            await run_and_store_checks(
                it.project.engine, it.session_id, ["true"], is_from_user=False
            )
        (check,) = it.calls()
    assert isinstance(check.state, ToolStateError)
    assert is_goal_check(check)


async def test_a_check_of_the_users_needs_no_answer_and_lifts_no_denial(tmp_path: Path) -> None:
    rules = {"bash": {"*": "ask", "touch denied": "deny"}}
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="Done.")], permission=rules, profile="ask"
    ) as it:
        await it.prompt()
        checks = ["touch asked", "touch denied"]
        await run_and_store_checks(it.project.engine, it.session_id, checks, is_from_user=True)
        asked, denied = it.calls()
        assert (it.work / "asked").exists()
        assert not (it.work / "denied").exists()
    assert not isinstance(asked.state, ToolStateError)
    assert isinstance(denied.state, ToolStateError)
    assert "Permission denied by the rule bash touch denied" in denied.state.error
