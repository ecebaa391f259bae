"""Handlers that control the terminal UIs of a project, by publishing events that these follow."""

from collections.abc import Awaitable, Callable

from codeloop.app.project import Project
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.api.tui import (
    AppendPrompt,
    ExecuteCommand,
    PublishTui,
    ShowToast,
)
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

_COMMANDS_BY_OLD_NAME = {
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
"""The commands of the terminal UI, by their names in OpenCode's older key bindings."""

_COMMANDS_BY_NAME = {
    **_COMMANDS_BY_OLD_NAME,
    **{
        name: name
        for name in (*_COMMANDS_BY_OLD_NAME.values(), "help.show", "model.list", "theme.list")
    },
}


async def append_prompt(project: Project, args: AppendPrompt) -> bool:
    """Append text to the input of the prompt."""
    project.publish_live(PromptAppended(properties=PromptText(text=args.text)))
    return True


async def execute_command(project: Project, args: ExecuteCommand) -> bool:
    """Run a command; for an unknown name the event has no command."""
    project.publish_live(
        CommandSent(properties=TuiCommand(command=_COMMANDS_BY_NAME.get(args.command)))
    )
    return True


async def show_toast(project: Project, args: ShowToast) -> bool:
    """Show a message."""
    toast = Toast(
        message=args.message, variant=args.variant, title=args.title, duration=args.duration
    )
    project.publish_live(ToastShown(properties=toast))
    return True


async def publish_event(project: Project, args: PublishTui) -> bool:
    """Publish one of the events for terminal UIs as it is, with a new id."""
    project.publish_live(replace(args.event, id=new_id("evt")))
    return True


async def select_session(project: Project, args: SessionId) -> bool:
    """Show a session. Raises OperationError when no session has that id."""
    session = project.store.get_session(args.session_id)
    project.publish_live(SessionSelected(properties=SessionRef(session_id=session.id)))
    return True


def _make_command_handler(name: str) -> Callable[[Project, NoArguments], Awaitable[bool]]:
    async def send(project: Project, _args: NoArguments) -> bool:
        project.publish_live(CommandSent(properties=TuiCommand(command=name)))
        return True

    return send


submit_prompt = _make_command_handler("prompt.submit")
clear_prompt = _make_command_handler("prompt.clear")
open_help = _make_command_handler("help.show")
open_sessions = _make_command_handler("session.list")
# A quirk of OpenCode's API: this route opens the sessions.
open_themes = _make_command_handler("session.list")
open_models = _make_command_handler("model.list")
