"""The operations of `tui`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import (
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
)
from codeloop.schema.sessions import OfOneSession
from codeloop.schema.tui import AppendPrompt, ExecuteCommand, PublishTui, ShowToast


async def append_prompt(client: Client, args: AppendPrompt) -> bool:
    """POST /tui/append-prompt.

    Puts text into the input of an attached terminal UI.
    """
    return await client.call(TUI_APPEND_PROMPT, **asdict(args))


async def submit_prompt(client: Client) -> bool:
    """POST /tui/submit-prompt."""
    return await client.call(TUI_SUBMIT_PROMPT)


async def clear_prompt(client: Client) -> bool:
    """POST /tui/clear-prompt."""
    return await client.call(TUI_CLEAR_PROMPT)


async def open_help(client: Client) -> bool:
    """POST /tui/open-help."""
    return await client.call(TUI_OPEN_HELP)


async def open_sessions(client: Client) -> bool:
    """POST /tui/open-sessions."""
    return await client.call(TUI_OPEN_SESSIONS)


async def open_themes(client: Client) -> bool:
    """POST /tui/open-themes."""
    return await client.call(TUI_OPEN_THEMES)


async def open_models(client: Client) -> bool:
    """POST /tui/open-models."""
    return await client.call(TUI_OPEN_MODELS)


async def execute_command(client: Client, args: ExecuteCommand) -> bool:
    """POST /tui/execute-command.

    Has an attached terminal UI run one of its commands, by its name or an older one.
    """
    return await client.call(TUI_EXECUTE, **asdict(args))


async def show_toast(client: Client, args: ShowToast) -> bool:
    """POST /tui/show-toast.

    Shows a message in an attached terminal UI; `duration` in ms.
    """
    return await client.call(TUI_TOAST, **asdict(args))


async def publish(client: Client, args: PublishTui) -> bool:
    """POST /tui/publish.

    Sends one of the events that a terminal UI obeys; `event` is the whole body.
    """
    return await client.call(TUI_PUBLISH, **asdict(args))


async def select_session(client: Client, args: OfOneSession) -> bool:
    """POST /tui/select-session."""
    return await client.call(TUI_SELECT, **asdict(args))
