"""What a client has an attached terminal UI do: each call is one event for those
who follow the directory.
"""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.schema.api.session_requests import SESSION_CREATE, CreateSession, SessionId
from codeloop.schema.api.tui import (
    TUI_APPEND_PROMPT,
    TUI_CLEAR_PROMPT,
    TUI_EXECUTE,
    TUI_OPEN_HELP,
    TUI_OPEN_MODELS,
    TUI_OPEN_SESSIONS,
    TUI_OPEN_THEMES,
    TUI_PUBLISH,
    TUI_SELECT,
    TUI_SUBMIT_PROMPT,
    TUI_TOAST,
    PublishTui,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import (
    CommandSent,
    PromptAppended,
    PromptText,
    ToastShown,
    TuiCommand,
)
from codeloop.schema.operation import AnyOperation
from tests.server.support.serving import served
from tests.support.scripted_project import ScriptedProject, open_scripted_project, wait_for_result


async def told(it: ScriptedProject, operation: AnyOperation, **args: Any) -> Any:
    """Carry out an operation; return the type and the properties of the
    event that followers see.
    """
    stream = it.project.store.follow()
    next_one = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert await it.client.call(operation, operation.takes(**args)) is True
    stamped = await wait_for_result(next_one)
    assert (stamped.seq, stamped.directory) == (None, str(it.work))
    event = msgspec.to_builtins(stamped.event)
    assert event["id"].startswith("evt_")
    return event["type"], event["properties"]


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        (TUI_SUBMIT_PROMPT, "prompt.submit"),
        (TUI_CLEAR_PROMPT, "prompt.clear"),
        (TUI_OPEN_HELP, "help.show"),
        (TUI_OPEN_SESSIONS, "session.list"),
        (TUI_OPEN_THEMES, "session.list"),
        (TUI_OPEN_MODELS, "model.list"),
    ],
)
async def test_each_button_is_a_command_of_the_terminal_ui(
    tmp_path: Path, operation: AnyOperation, command: str
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        assert await told(it, operation) == ("tui.command.execute", {"command": command})


@pytest.mark.parametrize(
    ("named", "properties"),
    [
        ("session_new", {"command": "session.new"}),
        ("agent_cycle", {"command": "agent.cycle"}),
        ("messages_half_page_up", {"command": "session.half.page.up"}),
        ("session.new", {"command": "session.new"}),
        ("no such command", {}),
    ],
)
async def test_a_command_is_known_by_its_name_or_an_older_one(
    tmp_path: Path, named: str, properties: dict[str, str]
) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        assert await told(it, TUI_EXECUTE, command=named) == ("tui.command.execute", properties)


async def test_text_and_messages_are_passed_on_as_they_are(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        assert await told(it, TUI_APPEND_PROMPT, text="a\nb") == (
            "tui.prompt.append",
            {"text": "a\nb"},
        )
        whole = {"title": "T", "message": "M", "variant": "warning", "duration": 5}
        assert await told(it, TUI_TOAST, **whole) == ("tui.toast.show", whole)
        plain = {"message": "M", "variant": "info"}
        assert await told(it, TUI_TOAST, **plain) == ("tui.toast.show", plain)


async def test_a_published_event_is_the_given_one_under_an_id_of_ours(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        given = PromptAppended(id="evt_mine", properties=PromptText(text="x"))
        stream = it.project.store.follow()
        next_one = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        await it.client.call(TUI_PUBLISH, PublishTui(event=given))
        event = (await wait_for_result(next_one)).event
        assert isinstance(event, PromptAppended)
        assert event.properties == given.properties
        assert event.id != "evt_mine"
        sent = CommandSent(properties=TuiCommand(command="anything.else"))
        assert await told(it, TUI_PUBLISH, event=sent) == (
            "tui.command.execute",
            {"command": "anything.else"},
        )


async def test_a_session_is_selected_when_there_is_one(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        made = await it.client.call(SESSION_CREATE, CreateSession())
        assert await told(it, TUI_SELECT, session_id=made.id) == (
            "tui.session.select",
            {"sessionID": made.id},
        )
        with pytest.raises(OperationError) as raised:
            await it.client.call(TUI_SELECT, SessionId(session_id="ses_none"))
        assert raised.value.kind == "NotFoundError"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("append-prompt", {}),
        ("append-prompt", {"text": 5}),
        ("execute-command", {}),
        ("show-toast", {"message": "M", "variant": "loud"}),
        ("publish", {"type": "session.idle", "properties": {"sessionID": "ses_x"}}),
        ("publish", {"type": "tui.toast.show", "properties": {}}),
        ("publish", []),
        ("select-session", {}),
    ],
)
async def test_a_body_that_does_not_fit_is_refused(tmp_path: Path, path: str, body: Any) -> None:
    async with served(tmp_path) as it:
        refused = await it.post(f"/tui/{path}", body, 400)
        assert refused["name"] == "BadRequest"


async def test_over_http_the_body_is_the_event(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        project = await it.project()
        next_one = asyncio.ensure_future(anext(project.store.follow()))
        await asyncio.sleep(0)
        body = {"type": "tui.toast.show", "properties": {"message": "M", "variant": "error"}}
        assert await it.post("/tui/publish", body) is True
        event = (await wait_for_result(next_one)).event
        assert isinstance(event, ToastShown)
        assert event.properties.message == "M"
