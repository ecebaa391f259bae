"""Stopping a turn at any moment leaves a valid history, and the next prompt works."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from codeloop.schema.api.session_inputs import ABORT, PROMPT_ASYNC, Prompt, TextPartInput
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import MessageAbortedError
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    ReasoningPart,
    TextPart,
    ToolPart,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
)
from tests.cli.program import UNCONFINED, lives
from tests.support.scripted_project import (
    ScriptedProject,
    check_turns,
    join_texts,
    list_texts,
    make_answer,
    make_call,
    open_scripted_project,
    wait_for_result,
    wait_until,
)

AFTER = ScriptedAnswer(text="After.")
SLOW_TEXT = ScriptedAnswer(text="word " * 400, deltas=400, delay_ms=10)
SLOW_THINKING = ScriptedAnswer(reasoning="hm " * 400, deltas=400, delay_ms=10)
SLOW_ARGUMENTS = ScriptedAnswer(
    calls=(ScriptedCall("write", {"filePath": "a", "content": "x" * 400}),), deltas=400, delay_ms=10
)
SLOW_BASH = make_answer(make_call("bash", command="echo begun; echo $$ > begun; exec sleep 77"))
SLOW_TWO = make_answer(
    make_call("bash", command="echo $$ > begun; exec sleep 77"),
    make_call("bash", command="touch second"),
)
# A sandbox that can't hide the secret of the project asks about each command.
ALLOWED: dict[str, Any] = {"permission": {"bash": "allow"}}
ASKS = make_answer(make_call("read", filePath="x.env"))


def has_text(it: ScriptedProject) -> bool:
    last = it.view().entries[-1]
    return isinstance(last.info, AssistantMessage) and any(
        isinstance(part, TextPart) for part in last.parts
    )


def is_thinking(it: ScriptedProject) -> bool:
    return any(isinstance(part, ReasoningPart) for part in it.view().entries[-1].parts)


def is_writing_a_call(it: ScriptedProject) -> bool:
    return any(isinstance(part.state, ToolStatePending) for part in it.calls())


def is_running(it: ScriptedProject) -> bool:
    return pid(it) > 0 and any(isinstance(part.state, ToolStateRunning) for part in it.calls())


def pid(it: ScriptedProject) -> int:
    """Return the process id of the command that was started; 0: none was."""
    file = it.work / "begun"
    return int(file.read_text().strip() or 0) if file.exists() else 0


def is_asking(it: ScriptedProject) -> bool:
    return bool(it.project.store.list_pending_permissions())


PHASES: dict[str, tuple[ScriptedAnswer, Callable[[ScriptedProject], bool]]] = {
    "text": (SLOW_TEXT, has_text),
    "thinking": (SLOW_THINKING, is_thinking),
    "arguments": (SLOW_ARGUMENTS, is_writing_a_call),
    "bash": (SLOW_BASH, is_running),
    "bash, another waits": (SLOW_TWO, is_running),
    "question": (ASKS, is_asking),
}


def check_closed(it: ScriptedProject) -> None:
    """Fail if anything of the session is still open."""
    for entry in it.view().entries:
        if isinstance(entry.info, AssistantMessage):
            assert entry.info.time.completed is not None
        for part in entry.parts:
            if isinstance(part, ToolPart):
                assert not isinstance(part.state, ToolStatePending | ToolStateRunning)
            if isinstance(part, ReasoningPart):
                assert part.time.end is not None
    assert it.project.store.list_pending_permissions() == []


async def begin(it: ScriptedProject) -> None:
    (it.work / "x.env").write_text("KEY=1\n")
    await it.client.call(
        PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
    )


@pytest.mark.parametrize("phase", PHASES)
async def test_an_abort_closes_everything_and_the_next_prompt_works(
    tmp_path: Path, phase: str
) -> None:
    answer, reached = PHASES[phase]
    async with open_scripted_project(tmp_path, [answer, AFTER], **UNCONFINED) as it:
        await begin(it)
        await wait_until(lambda: reached(it))
        task = it.project.runs._get_run(it.session_id).turn
        assert task is not None
        assert (
            await wait_for_result(it.client.call(ABORT, SessionId(session_id=it.session_id)))
            is True
        )
        assert task.result().reason == "aborted"
        check_closed(it)
        last = it.view().entries[-1].info
        assert isinstance(last, AssistantMessage)
        assert isinstance(last.error, MessageAbortedError)
        assert not (it.work / "second").exists()
        assert not pid(it) or not lives(pid(it))
        after = await it.prompt("go on")
        assert join_texts(after.parts) == "After."
        check_turns(it.model.requests[-1].messages)


async def test_what_a_stopped_command_had_printed_is_told_to_the_model(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [SLOW_BASH, AFTER], **ALLOWED) as it:
        await begin(it)
        await wait_until(lambda: is_running(it))
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        (made,) = it.calls()
        assert isinstance(made.state, ToolStateError)
        assert made.state.metadata is not None
        assert made.state.metadata["interrupted"] is True
        assert "begun" in made.state.metadata["output"]
        await it.prompt("go on")
        (output,) = list_texts(it.model.requests[-1].messages[2])
        assert "Interrupted" in output
        assert "begun" in output


async def test_a_call_that_waited_for_the_one_before_it_is_told_as_not_started(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, [SLOW_TWO, AFTER], **ALLOWED) as it:
        await begin(it)
        await wait_until(lambda: is_running(it))
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        # Its arguments were complete.
        assert it.results()[1] == "Interrupted before the call was started. It was not run."


async def test_text_that_had_come_is_kept_and_marked_for_the_model(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [SLOW_TEXT, AFTER]) as it:
        await begin(it)
        await wait_until(lambda: has_text(it))
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        part = it.view().entries[-1].parts[1]
        assert isinstance(part, TextPart)
        assert part.text.startswith("word")
        await it.prompt("go on")
        assert list_texts(it.model.requests[-1].messages[1]) == [part.text, "[interrupted]"]


@pytest.mark.parametrize("phase", PHASES)
async def test_a_second_cancel_on_top_still_leaves_a_session_that_goes_on(
    tmp_path: Path, phase: str
) -> None:
    answer, reached = PHASES[phase]
    async with open_scripted_project(tmp_path, [answer, AFTER], **ALLOWED) as it:
        await begin(it)
        await wait_until(lambda: reached(it))
        task = it.project.runs._get_run(it.session_id).turn
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.done()
        after = await it.prompt("go on")
        assert join_texts(after.parts) == "After."
        check_closed(it)
        check_turns(it.model.requests[-1].messages)


async def test_closing_the_project_stops_a_running_command(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [SLOW_BASH], **UNCONFINED) as it:
        await begin(it)
        await wait_until(lambda: is_running(it))
        await wait_for_result(it.project.runs.close())
        check_closed(it)
        assert not lives(pid(it))


async def test_an_abort_of_an_idle_session_does_nothing(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [AFTER]) as it:
        assert await it.client.call(ABORT, SessionId(session_id=it.session_id)) is True
        assert join_texts((await it.prompt()).parts) == "After."


async def test_an_abort_right_after_the_prompt_leaves_a_session_that_goes_on(
    tmp_path: Path,
) -> None:
    async with open_scripted_project(tmp_path, [AFTER, AFTER]) as it:
        await begin(it)
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        assert not it.project.runs.is_running(it.session_id)
        assert join_texts((await it.prompt("go on")).parts) == "After."


async def test_a_call_that_still_waited_for_leave_is_told_as_not_run(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ASKS, AFTER]) as it:
        await it.client.call(
            PROMPT_ASYNC, Prompt(session_id=it.session_id, parts=[TextPartInput(text="go")])
        )
        await wait_until(lambda: is_asking(it))
        await wait_for_result(it.client.call(ABORT, SessionId(session_id=it.session_id)))
        assert it.results() == ["Interrupted while waiting for permission. It was not run."]
        assert not is_asking(it), "the question is withdrawn"
