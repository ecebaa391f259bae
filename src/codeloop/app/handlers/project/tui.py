"""Handlers that control an attached terminal UI."""

from collections.abc import Awaitable, Callable

from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.schema import operation
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.api.tui import AppendPrompt, ExecuteCommand, PublishTui, ShowToast
from codeloop.schema.ids import new_id
from codeloop.schema.live_events import (
    CommandSent,
    PromptAppended,
    PromptText,
    SessionRef,
    SessionSelected,
    Toast,
    ToastShown,
    TuiCommand,
)
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace

_OLDER = {
    "session_new": "session.new",
    "session_list": "session.list",
    "session_share": "session.share",
    "session_interrupt": "session.interrupt",
    "session_compact": "session.compact",
    "messages_page_up": "session.page.up",
    "messages_page_down": "session.page.down",
    "messages_line_up": "session.line.up",
    "messages_line_down": "session.line.down",
    "messages_half_page_up": "session.half.page.up",
    "messages_half_page_down": "session.half.page.down",
    "messages_first": "session.first",
    "messages_last": "session.last",
    "input_clear": "prompt.clear",
    "input_submit": "prompt.submit",
    "agent_cycle": "agent.cycle",
}
"""Commands of a terminal UI by the names they had in older key bindings."""

_COMMANDS = {**_OLDER, **{name: name for name in (*_OLDER.values(), "help.show", "model.list", "theme.list")}}


@handles(operation.TUI_APPEND_PROMPT)
async def append_prompt(project: Project, args: AppendPrompt) -> bool:
    """Put text into the input."""
    project.publish_live(PromptAppended(properties=PromptText(text=args.text)))
    return True


@handles(operation.TUI_EXECUTE)
async def execute(project: Project, args: ExecuteCommand) -> bool:
    """Run a command; for a name that nobody knows the event names none."""
    project.publish_live(CommandSent(properties=TuiCommand(command=_COMMANDS.get(args.command))))
    return True


@handles(operation.TUI_TOAST)
async def toast(project: Project, args: ShowToast) -> bool:
    """Show a message."""
    toast = Toast(message=args.message, variant=args.variant, title=args.title, duration=args.duration)
    project.publish_live(ToastShown(properties=toast))
    return True


@handles(operation.TUI_PUBLISH)
async def publish(project: Project, args: PublishTui) -> bool:
    """Send one of these events as it was given, under an id of our own."""
    project.publish_live(replace(args.event, id=new_id("evt")))
    return True


@handles(operation.TUI_SELECT)
async def select(project: Project, args: SessionId) -> bool:
    """Show a session. Raises OperationError when no session has that id."""
    session = project.store.session(args.session_id)
    project.publish_live(SessionSelected(properties=SessionRef(session_id=session.id)))
    return True


def _command(name: str) -> Callable[[Project, NoArguments], Awaitable[bool]]:
    async def send(project: Project, _args: NoArguments) -> bool:
        project.publish_live(CommandSent(properties=TuiCommand(command=name)))
        return True

    return send


handles(operation.TUI_SUBMIT_PROMPT)(_command("prompt.submit"))
handles(operation.TUI_CLEAR_PROMPT)(_command("prompt.clear"))
handles(operation.TUI_OPEN_HELP)(_command("help.show"))
handles(operation.TUI_OPEN_SESSIONS)(_command("session.list"))
handles(operation.TUI_OPEN_THEMES)(_command("session.list"))  # that is what the contract says of this route
handles(operation.TUI_OPEN_MODELS)(_command("model.list"))
