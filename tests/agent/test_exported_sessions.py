"""A session goes from one service to another by export and import,
and back: nothing of it is lost or changed.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_requests import (
    SESSION_GET,
    SESSION_IMPORT,
    ImportSession,
    SessionId,
)
from tests.support.adapter_rows import ADAPTER_ROWS
from tests.support.answers import Answer, Call
from tests.support.http_connection import ReceivedRequest
from tests.support.model_server import ModelServer
from tests.support.scripted_project import ScriptedProject, join_texts, open_scripted_project

NAMES = list(ADAPTER_ROWS)
PAIRS = [(name, NAMES[(at + 3) % len(NAMES)]) for at, name in enumerate(NAMES)]
"""Each adapter with one of another kind; `tests/model/protocols/test_every_adapter.py`
switches between all pairs.
"""
SIGNED, OTHER = "c2lnMQ+/==", "c2lnMg+/=="
THOUGHT = "First,\n\tthe file. größe 漢字 "


class Service:
    """Answers with thinking and a call, then with a word, for each prompt;
    titles get an answer of their own.
    """

    def __init__(self, signature: str) -> None:
        self.signature = signature
        self.asked: list[str] = []

    def choose(self, received: ReceivedRequest) -> Answer:
        body = received.body.decode()
        if '"tools"' not in body:
            return Answer(text="A title")
        self.asked.append(body)
        if len(self.asked) % 2 == 0:
            return Answer(text="Done.")
        call = Call("read", json.dumps({"filePath": "a.txt"}), f"call{len(self.asked)}")
        return Answer(reasoning=THOUGHT, signature=self.signature, text="I look.", calls=(call,))


async def export(it: ScriptedProject) -> dict[str, Any]:
    info = await it.client.call(SESSION_GET, SessionId(session_id=it.session_id))
    messages = await it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id))
    return msgspec.json.decode(msgspec.json.encode({"info": info, "messages": messages}))


async def go_on(
    folder: Path, name: str, service: Service, session: dict[str, Any] | None
) -> dict[str, Any]:
    """Import a session at another place, prompt there, and return what is exported of it."""
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "a.txt").write_text("what stands in it\n")
    async with ModelServer(service.choose) as server:
        model = ADAPTER_ROWS[name].open(server.url)
        async with open_scripted_project(folder, model) as it:
            if session is not None:
                given = ImportSession(info=session["info"], messages=session["messages"])
                done = await it.client.call(SESSION_IMPORT, given)
                assert done.notes == []
                it.session_id = done.session.id
            answer = await it.prompt("go on")
            assert join_texts(answer.parts) == "Done.", answer.info
            found = await export(it)
        await model.aclose()
    if session is not None:
        assert found["messages"][: len(session["messages"])] == session["messages"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_a_session_is_whole_at_another_service_and_back(
    tmp_path: Path, one: str, other: str
) -> None:
    first, second = (
        Service(SIGNED if ADAPTER_ROWS[one].signs else ""),
        Service(OTHER if ADAPTER_ROWS[other].signs else ""),
    )
    session = await go_on(tmp_path / "1", one, first, None)
    session = await go_on(tmp_path / "2", other, second, session)
    assert SIGNED not in second.asked[0], "one service's signature is nothing to another"
    assert "what stands in it" in second.asked[0]
    await go_on(tmp_path / "3", one, first, session)
    back = first.asked[2]
    assert back.count("what stands in it") == 2
    assert OTHER not in back
    assert back.count(SIGNED) == int(ADAPTER_ROWS[one].signs), (
        "what was signed goes back as it came"
    )
