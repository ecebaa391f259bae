"""Messages by hand: pages, and changes, which a running turn allows for waiting prompts alone."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.handlers.session.message import read_page
from codeloop.model.chat import TextPiece, UserModelMessage
from codeloop.model.testing.script import ScriptedAnswer, TokenCount
from codeloop.schema.api.session_inputs import ABORT, PROMPT, PROMPT_ASYNC, Prompt, TextPartInput
from codeloop.schema.api.session_messages import (
    MESSAGE_DELETE,
    MESSAGE_GET,
    PART_DELETE,
    PART_UPDATE,
    SESSION_MESSAGES,
    SESSION_QUEUED,
    ListMessages,
    MessageId,
    PartId,
    UpdatePart,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import new_id
from codeloop.schema.message import UserMessage
from codeloop.schema.operation import AnyOperation
from codeloop.schema.part import TextPart
from codeloop.schema.wire import replace
from tests.support.scripted_project import (
    LOCAL_CLIENT_ONLY,
    ScriptedProject,
    both_clients,
    join_texts,
    make_answer,
    make_call,
    open_scripted_project,
    wait_until,
)

__all__ = ["both_clients"]

WAIT = make_answer(make_call("bash", command="until [ -e go ]; do sleep 0.01; done"))
DONE = ScriptedAnswer(text="Done.", tokens=TokenCount(input=5, output=2))


async def refused(wait: Any) -> OperationError:
    with pytest.raises(OperationError) as raised:
        await wait
    return raised.value


async def say(it: ScriptedProject, text: str) -> str:
    """Send a prompt without waiting, and return its message's id."""
    chosen = new_id("msg")
    await it.client.call(
        PROMPT_ASYNC,
        Prompt(session_id=it.session_id, parts=[TextPartInput(text=text)], message_id=chosen),
    )
    return chosen


async def queue(it: ScriptedProject) -> list[str]:
    found = await it.client.call(SESSION_QUEUED, SessionId(session_id=it.session_id))
    return [join_texts(message.parts) for message in found]


def prompts(it: ScriptedProject, request: int) -> list[str]:
    turns = [
        turn for turn in it.model.requests[request].messages if isinstance(turn, UserModelMessage)
    ]
    return [piece.text for turn in turns for piece in turn.content if isinstance(piece, TextPiece)]


async def test_pages_go_back_to_the_first_message(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        for number in range(7):
            await it.prompt(str(number), no_reply=True)
        seen: list[str] = []
        before = None
        sizes: list[int] = []
        while True:
            messages, before = read_page(
                it.project, ListMessages(session_id=it.session_id, limit=3, before=before)
            )
            seen = [join_texts(message.parts) for message in messages] + seen
            sizes.append(len(messages))
            if before is None:
                break
            cursor = json.loads(base64.b64decode(before))
            assert cursor == {"id": messages[0].info.id, "time": messages[0].info.time.created}
        assert seen == list("0123456")
        assert sizes == [3, 3, 1]
        whole = await it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id))
        assert (
            await it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id, limit=7))
            == whole
        )
        assert read_page(it.project, ListMessages(session_id=it.session_id, limit=7))[1] is None


@pytest.mark.parametrize(
    "args",
    [
        {"limit": 0},
        {"limit": -1},
        {"before": "nonsense"},
        {"before": "é"},
        {"before": "eyJpZCI6MX0="},
        {"before": ""},
    ],
)
async def test_a_bad_page_is_refused(tmp_path: Path, args: dict[str, Any]) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        error = await refused(
            it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id, **args))
        )
        assert error.kind == "BadRequest"


async def test_messages_and_parts_of_an_idle_session_can_be_changed(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE, DONE]) as it:
        await it.prompt("one")
        await it.prompt("two")
        asked, answer = it.view().entries[:2]
        spent = it.view().session.tokens
        assert spent is not None
        first = asked.parts[0]
        assert isinstance(first, TextPart)
        where = {"session_id": it.session_id, "message_id": asked.info.id, "part_id": first.id}
        changed = replace(first, text="another")
        assert await it.client.call(PART_UPDATE, UpdatePart(**where, part=changed)) == changed
        shown = await it.client.call(
            MESSAGE_GET, MessageId(session_id=it.session_id, message_id=asked.info.id)
        )
        assert shown.parts == [changed]
        assert await it.client.call(PART_DELETE, PartId(**where)) is True
        assert it.view().entries[0].parts == ()
        assert (
            await it.client.call(
                MESSAGE_DELETE, MessageId(session_id=it.session_id, message_id=answer.info.id)
            )
            is True
        )
        assert [entry.info.id for entry in it.view().entries].count(answer.info.id) == 0
        left = it.view().session.tokens
        assert left is not None
        assert (left.input, left.output) == (spent.input - 5, spent.output - 2)


async def test_what_is_not_there_or_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        stored = await it.prompt("one", no_reply=True)
        part = stored.parts[0]
        where = {"session_id": it.session_id, "message_id": stored.info.id}
        other = replace(part, id="prt_x")
        rows: list[tuple[AnyOperation, dict[str, Any], str]] = [
            (MESSAGE_DELETE, {**where, "message_id": "msg_x"}, "NotFoundError"),
            (MESSAGE_GET, {**where, "session_id": "ses_x"}, "NotFoundError"),
            (PART_DELETE, {**where, "part_id": "prt_x"}, "NotFoundError"),
            (PART_UPDATE, {**where, "part_id": part.id, "part": other}, "BadRequest"),
            (PART_UPDATE, {**where, "part_id": "prt_x", "part": other}, "NotFoundError"),
        ]
        for operation, args, kind in rows:
            assert (await refused(it.client.call(operation, operation.takes(**args)))).kind == kind


async def test_a_waiting_prompt_is_shown_edited_cancelled_and_taken_up(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [WAIT, DONE]) as it:
        turn = asyncio.create_task(it.prompt("begin"))
        await wait_until(it.calls)
        assert await queue(it) == []
        edited, cancelled = await say(it, "a slip"), await say(it, "never mind")
        assert await queue(it) == ["a slip", "never mind"]
        (part,) = next(entry.parts for entry in it.view().entries if entry.info.id == edited)
        assert isinstance(part, TextPart)
        where = {"session_id": it.session_id, "message_id": edited, "part_id": part.id}
        await it.client.call(PART_UPDATE, UpdatePart(**where, part=replace(part, text="as meant")))
        await it.client.call(
            MESSAGE_DELETE, MessageId(session_id=it.session_id, message_id=cancelled)
        )
        assert await queue(it) == ["as meant"]
        (it.work / "go").touch()
        await turn
        assert prompts(it, 1) == ["begin", "as meant"]
        assert await queue(it) == []


async def test_what_a_running_turn_works_with_is_not_changed(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [WAIT, ScriptedAnswer(text="Done.", delay_ms=60_000)]
    ) as it:
        turn = asyncio.create_task(it.prompt("begin"))
        await wait_until(it.calls)
        waiting = await say(it, "more")
        begun, answer = it.view().entries[0], it.view().entries[1]
        for entry in (begun, answer):
            where = {"session_id": it.session_id, "message_id": entry.info.id}
            assert (
                await refused(it.client.call(MESSAGE_DELETE, MessageId(**where)))
            ).kind == "SessionBusyError"
            part = entry.parts[0]
            assert (
                await refused(it.client.call(PART_DELETE, PartId(**where, part_id=part.id)))
            ).kind == "SessionBusyError"
            error = await refused(
                it.client.call(PART_UPDATE, UpdatePart(**where, part_id=part.id, part=part))
            )
            assert error.kind == "SessionBusyError"
        (it.work / "go").touch()
        await wait_until(lambda: len(it.model.requests) == 2)
        error = await refused(
            it.client.call(MESSAGE_DELETE, MessageId(session_id=it.session_id, message_id=waiting))
        )
        assert error.kind == "SessionBusyError"
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        await turn
        assert (
            await it.client.call(
                MESSAGE_DELETE, MessageId(session_id=it.session_id, message_id=waiting)
            )
            is True
        )


async def test_after_an_abort_nothing_waits_and_the_prompt_is_still_there(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [WAIT, DONE]) as it:
        turn = asyncio.create_task(it.prompt("begin"))
        await wait_until(it.calls)
        await say(it, "later")
        await it.client.call(ABORT, SessionId(session_id=it.session_id))
        await turn
        assert await queue(it) == []
        assert isinstance(it.view().entries[-1].info, UserMessage)
        await it.prompt("now")
        assert prompts(it, 1)[-2:] == ["later", "now"]


@LOCAL_CLIENT_ONLY  # over HTTP the turn has begun before the message can be deleted
async def test_a_prompt_cancelled_before_anything_answered_it_says_so(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [DONE]) as it:
        chosen = new_id("msg")
        given = Prompt(session_id=it.session_id, parts=[TextPartInput(text="x")], message_id=chosen)
        asked = asyncio.create_task(it.client.call(PROMPT, given))
        async with asyncio.timeout(30):
            while not it.view().entries:
                await asyncio.sleep(0)
        await it.client.call(MESSAGE_DELETE, MessageId(session_id=it.session_id, message_id=chosen))
        assert "cancelled" in str(await refused(asked))
        assert it.model.requests == []
