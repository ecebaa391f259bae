"""That sandboxed commands reach no network is said where one of them fails: on the screen,
in `run`, and over HTTP.
"""

from pathlib import Path

import pytest

from codeloop.cli.output.tool_call import format_call
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.part import ToolPart, ToolStateCompleted
from tests.support.sandbox_support import has_sandbox
from tests.support.scripted_project import make_answer, make_call, open_scripted_project
from tests.tui.app.running_ui import played

NOTE = "blocked: the network, which is off for sandboxed commands."


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here")
async def test_a_command_without_the_network_says_so_in_every_interface(tmp_path: Path) -> None:
    line = "python3 -c 'import socket; socket.getaddrinfo(\"example.com\", 443)'"
    made = make_answer(make_call("bash", "c1", command=line))
    async with open_scripted_project(
        tmp_path, [made, ScriptedAnswer(text="Done.")], sandbox={"network": "off"}
    ) as desk:
        async with played(desk, tmp_path / "state", size=(100, 40)) as ui:
            await ui.type("go", "enter")
            await ui.sees("Done.")
            screen, session = ui.screen(), ui.ui.session.id
        messages = await desk.client.call(SESSION_MESSAGES, ListMessages(session_id=session))
    (part,) = [part for message in messages for part in message.parts if isinstance(part, ToolPart)]
    assert isinstance(part.state, ToolStateCompleted)
    assert NOTE in screen
    assert NOTE in "\n".join(format_call(part, colour=False))
    assert part.state.metadata["notes"] == [NOTE]
