"""Rows of `hooks` that a model judges: what its verdict does at each event,
and what an answer that is none does.
"""

from pathlib import Path
from typing import Any

import pytest

from codeloop.agent.hooks.hook_judge import HookJudge
from codeloop.app.models.open_models import OpenModels
from codeloop.extend.hooks.configured.transcript import Transcripts
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.bounds.extension import HOOK_TRANSCRIPT
from codeloop.schema.config import HookConfig
from codeloop.schema.errors import OperationError
from codeloop.schema.part import ToolStateCompleted
from codeloop.schema.wire import replace
from tests.support.scripted_project import make_answer, make_call, open_scripted_project

DONE = ScriptedAnswer(text="Done.")
ECHO = make_answer(make_call("bash", command="echo hi"))


def verdict(text: str) -> ScriptedAnswer:
    return ScriptedAnswer(kind="side", text=text)


NO = verdict('{"ok": false, "reason": "the reason"}')
YES = verdict('```json\n{"ok": true, "reason": ""}\n```')


def judged(event: str, **more: Any) -> dict[str, Any]:
    return {event: [{"hooks": [{"type": "prompt", "prompt": "Is it well?", **more}]}]}


async def test_a_prompt_is_judged_before_anything_of_it_is_stored(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [NO, YES, DONE], hooks=judged("UserPromptSubmit")
    ) as it:
        with pytest.raises(OperationError, match="the reason"):
            await it.prompt("first")
        assert not it.view().entries
        await it.prompt("second")
        assert "second" in str(it.model.requests[1].messages)
        assert "Is it well?" in str(it.model.requests[1].messages)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_after_a_call_a_refusal_ends_the_turn_or_is_read_by_the_model(
    tmp_path: Path, goes_on: bool
) -> None:
    hooks = judged("PostToolUse", continueOnBlock=goes_on)
    async with open_scripted_project(
        tmp_path, [ECHO, NO, DONE], hooks=hooks, permission={"bash": "allow"}
    ) as it:
        answer = await it.prompt()
        assert answer.stop is not None
        assert answer.stop.reason == ("done" if goes_on else "rejected")
        (state,) = (part.state for part in it.calls())
        assert isinstance(state, ToolStateCompleted)
        assert ("the reason" in state.output) is goes_on


async def test_a_turn_goes_on_with_the_reason_until_it_is_well(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE, NO, DONE, YES], hooks=judged("Stop")) as it:
        await it.prompt()
        assert "the reason" in str(it.model.requests[2].messages[-1])
        assert len(it.model.requests) == 4


@pytest.mark.parametrize("policy", [False, True])
async def test_an_answer_that_is_no_verdict_stops_a_call_only_as_a_policy(
    tmp_path: Path, policy: bool
) -> None:
    script = [ECHO, verdict("Perhaps."), verdict("I can't say."), DONE]
    hooks = judged("PreToolUse", policy=policy)
    async with open_scripted_project(
        tmp_path, script, hooks=hooks, permission={"bash": "allow"}
    ) as it:
        await it.prompt()
        assert isinstance(it.calls()[0].state, ToolStateCompleted) is not policy
        if policy:
            assert "gave no verdict" in str(it.calls()[0].state)


async def test_a_model_without_a_key_is_not_said_to_be_unknown(tmp_path: Path) -> None:
    told: list[str] = []
    session_model = {"providerID": "openai", "modelID": "gpt-5-mini"}
    async with open_scripted_project(tmp_path, []) as it:
        engine = replace(it.project.engine, models=OpenModels(it.project.providers))
        judge = HookJudge(lambda: engine, told.append)
        for name in ("anthropic/claude-sonnet-4-5", "anthropic/none"):
            row = HookConfig(
                event="Stop", type="prompt", prompt="Is it well?", model=name, place=name
            )
            with pytest.raises(HookFailed):
                await judge(row, it.session_id, session_model, "Is it well?")
    keyless, unknown = told
    assert "has no model" not in keyless
    assert "anthropic/claude-sonnet-4-5 can't be asked, so openai/" in keyless
    assert "ANTHROPIC_API_KEY" in keyless
    assert "anthropic/none can't be asked, so openai/" in unknown
    assert "`anthropic` has no model `none`" in unknown


async def test_a_transcript_keeps_the_newest_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(HOOK_TRANSCRIPT, value=1_500)
    monkeypatch.setattr("codeloop.extend.hooks.configured.transcript.HOOK_TRANSCRIPT", small)
    async with open_scripted_project(tmp_path, [DONE, DONE, DONE]) as it:
        for text in ("first words", "second words", "third words"):
            await it.prompt(text)
        file = await Transcripts(it.project.store, tmp_path, it.work).update_file(it.session_id)
        assert file is not None
        assert "third words" in file.read_text()
        assert "first words" not in file.read_text()
