"""The client in the same process: what it calls is done, what it follows is what the store holds."""

from pathlib import Path

import msgspec

from codeloop.client.client import Client
from codeloop.client.local import LocalClient
from codeloop.model.answers import Answer
from codeloop.schema.event import MessageUpdated, PartUpdated, SessionUpdated, StoredEvent
from codeloop.schema.operation import SESSION_MESSAGES
from codeloop.schema.prompts import MessageWithParts
from codeloop.store.conversation import Conversation, View
from codeloop.store.store import Store
from tests.agent.harness import call, calls, rig, within

SCRIPT = [calls(call("write", filePath="a.txt", content="x"), call("read", filePath="a.txt")), Answer(text="Done.")]


async def test_applying_what_is_followed_gives_what_is_stored(tmp_path: Path) -> None:
    """A client that only reads events, as JSON, comes to the same state as the store."""
    async with rig(tmp_path, SCRIPT) as it:
        client: Client = LocalClient(it.project)
        begin = it.view().session
        view = View(begin)
        await it.prompt()
        last = it.project.store.last_seq()
        stream = client.follow(1)
        decode = msgspec.json.Decoder(StoredEvent).decode
        while True:
            stamped = await within(anext(stream))
            view.apply(decode(msgspec.json.encode(stamped.event)))
            if stamped.seq == last:
                break
        assert view.conversation() == it.view() == Store(it.project.store.path).conversation(it.session_id)
        assert isinstance(view.conversation(), Conversation)


async def test_events_applied_twice_change_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path, SCRIPT) as it:
        await it.prompt()
        stored = it.project.store.read_events(1)
        view = View(it.view().session)
        for _ in range(2):
            for stamped in stored:
                view.apply(stamped.event)
        assert view.conversation() == it.view()
        kinds = {type(stamped.event) for stamped in stored}
        assert {MessageUpdated, PartUpdated, SessionUpdated} <= kinds


async def test_messages_are_given_as_they_are_on_the_wire(tmp_path: Path) -> None:
    async with rig(tmp_path, SCRIPT) as it:
        await it.prompt()
        messages = await it.client.call(SESSION_MESSAGES, session_id=it.session_id)
        encoded = msgspec.json.encode(messages)
        assert msgspec.json.decode(encoded, type=list[MessageWithParts]) == messages
        roles = [message["info"]["role"] for message in msgspec.json.decode(encoded)]
        assert roles == ["user", "assistant", "assistant"]
