"""Messages of a session for dialogs."""

from pathlib import Path

import pytest

from bench.long_session import fill_session
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.tui.dialogs.parts.session_messages import read_messages
from tests.support.scripted_project import open_scripted_project


@pytest.mark.slow
async def test_a_long_session_is_read_in_pages_whole_and_in_its_order(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, [ScriptedAnswer(text="Done.")]) as it:
        await it.prompt()
        (database,) = tmp_path.rglob("codeloop.db")
        fill_session(database, it.session_id, 1_100)
        every = await it.client.call(SESSION_MESSAGES, ListMessages(session_id=it.session_id))
        assert len(every) > 1_100
        assert await read_messages(it.client, it.session_id) == every
