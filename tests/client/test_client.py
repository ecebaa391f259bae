"""Both clients, in process and over HTTP: what they call is done,
what they follow is what the store holds.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.client.local import LocalClient
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.answers import QUESTION_REJECT
from codeloop.schema.api.session_inputs import PROMPT, MessageWithParts, TextPartInput
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import SESSION_CREATE, SESSION_GET, CreateSession
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import Event, MessageUpdated, PartUpdated, SessionUpdated, StoredEvent
from codeloop.schema.live_events import PartDelta, ServerConnected, ServerHeartbeat, SessionIdle
from codeloop.schema.message import ModelRef, UserMessage
from codeloop.schema.operation import AnyOperation
from codeloop.store.conversation import Conversation
from codeloop.store.conversation_view import ConversationView
from codeloop.store.store import Store
from tests.support.scripted_project import (
    LOCAL_CLIENT_ONLY,
    both_clients,
    join_texts,
    make_answer,
    make_call,
    make_startup,
    open_in_process,
    open_over_http,
    open_scripted_project,
    wait_for_result,
)

__all__ = ["both_clients"]

SCRIPT = [
    make_answer(
        make_call("write", filePath="a.txt", content="x"), make_call("read", filePath="a.txt")
    ),
    ScriptedAnswer(text="Done."),
]


async def closed(stream: AsyncIterator[Any]) -> None:
    """End a stream that is not read to its end."""
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()


async def test_applying_what_is_followed_gives_what_is_stored(tmp_path: Path) -> None:
    """A client that only reads events, as JSON, comes to the same state as the store."""
    async with open_scripted_project(tmp_path, SCRIPT) as it:
        begin = it.view().session
        view = ConversationView(begin)
        await it.prompt()
        last = it.project.store.read_last_seq()
        stream = it.client.follow(1)
        decode = msgspec.json.Decoder(StoredEvent).decode
        while True:
            stamped = await wait_for_result(anext(stream))
            view.apply(decode(msgspec.json.encode(stamped.event)))
            if stamped.seq == last:
                break
        await closed(stream)
        assert (
            view.take_snapshot()
            == it.view()
            == Store(it.project.store.path).read_conversation(it.session_id)
        )
        assert isinstance(view.take_snapshot(), Conversation)


async def test_what_is_called_after_following_began_is_seen(tmp_path: Path) -> None:
    async with open_scripted_project(
        tmp_path, [ScriptedAnswer(text="One two three.", deltas=3), ScriptedAnswer(text="A title.")]
    ) as it:
        seen: list[Event] = []
        idle = asyncio.Event()

        async def follow() -> None:
            async for stamped in it.client.follow():
                seen.append(stamped.event)
                if isinstance(stamped.event, SessionIdle):
                    idle.set()

        following = asyncio.create_task(follow())
        await asyncio.sleep(0)
        await it.prompt()
        await wait_for_result(idle.wait())
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        first = next(event for event in seen if isinstance(event, MessageUpdated))
        assert isinstance(first.properties.info, UserMessage)
        assert (
            "".join(event.properties.delta for event in seen if isinstance(event, PartDelta))
            == "One two three."
        )
        assert not {ServerConnected, ServerHeartbeat} & {type(event) for event in seen}


@LOCAL_CLIENT_ONLY  # asks both itself
@pytest.mark.parametrize(
    ("operation", "args"),
    [
        (SESSION_GET, {"session_id": "ses_no?such#thing%"}),
        (SESSION_GET, {"session_id": "ses_ä b"}),
        (
            PROMPT,
            {
                "parts": [TextPartInput(text="x")],
                "model": ModelRef(provider_id="nobody", model_id="x"),
            },
        ),
        (PROMPT, {"parts": [TextPartInput(text="x")], "agent": "nobody"}),
        (QUESTION_REJECT, {"request_id": "que_x"}),
    ],
)
async def test_a_refusal_is_the_same_exception_everywhere(
    tmp_path: Path, operation: AnyOperation, args: dict[str, Any]
) -> None:
    for opened in (open_in_process, open_over_http):
        found: list[CodeloopError] = []
        async with opened(make_startup(tmp_path / "home", tmp_path), None) as (project, client):
            session = await LocalClient(project).call(SESSION_CREATE, CreateSession())
            given = {"session_id": session.id, **args} if operation is PROMPT else args
            for each in (LocalClient(project), client):
                with pytest.raises(CodeloopError) as raised:
                    await each.call(operation, operation.takes(**given))
                found.append(raised.value)
        here, there = found
        assert type(here) is type(there)
        assert getattr(here, "kind", None) == getattr(there, "kind", None)
        assert str(here) == str(there)


async def test_words_that_are_no_characters_are_sent_as_well_as_can_be(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as it:
        await it.prompt("caf\udce9")
        assert join_texts(it.view().entries[0].parts) == r"caf\xe9"


async def test_events_applied_twice_change_nothing(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, SCRIPT) as it:
        await it.prompt()
        stored = it.project.store.outbox.read_events(1)
        view = ConversationView(it.view().session)
        for _ in range(2):
            for stamped in stored:
                view.apply(stamped.event)
        assert view.take_snapshot() == it.view()
        kinds = {type(stamped.event) for stamped in stored}
        assert {MessageUpdated, PartUpdated, SessionUpdated} <= kinds


async def test_messages_are_given_as_they_are_on_the_wire(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, SCRIPT) as it:
        await it.prompt()
        messages = await it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id))
        encoded = msgspec.json.encode(messages)
        assert msgspec.json.decode(encoded, type=list[MessageWithParts]) == messages
        roles = [message["info"]["role"] for message in msgspec.json.decode(encoded)]
        assert roles == ["user", "assistant", "assistant"]
