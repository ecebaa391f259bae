"""What becomes of a goal's check that could not be run."""

from pathlib import Path

from codeloop.agent.checks.check_runs import is_goal_check
from codeloop.agent.goal.check_runner import run_and_store_checks
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.part import ToolStateError
from tests.support.scripted_project import open_scripted_project


async def test_a_check_that_can_not_be_started_is_marked_and_was_not_forbidden(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as it:
        await it.prompt()
        (check,) = await run_and_store_checks(it.project.engine, it.session_id, [" "], is_from_user=True)
        assert it.calls() == [check]
    assert isinstance(check.state, ToolStateError)
    assert is_goal_check(check)
    assert "denied" not in (check.state.metadata or {})
