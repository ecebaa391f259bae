"""Messages from clients to an attached terminal UI."""

from typing import Literal

from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.live_events import TuiEvent
from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.wire import Count, Wire


class PublishTui(Wire):
    """Sends one of the events that tell a terminal UI to do something;
    `event` is the whole body.
    """

    event: TuiEvent


class AppendPrompt(Wire):
    """Puts text into the input of an attached terminal UI."""

    text: str


class ExecuteCommand(Wire):
    """Has an attached terminal UI run one of its commands, by its name or an older one."""

    command: str


class ShowToast(Wire):
    """Shows a message in an attached terminal UI; `duration` in ms."""

    message: str
    variant: Literal["info", "success", "warning", "error"]
    title: str | None = None
    duration: Count | None = None


TUI_APPEND_PROMPT = Operation(
    "tui.appendPrompt",
    "POST",
    "/tui/append-prompt",
    AppendPrompt,
    bool,
    "project.tui:append_prompt",
)
TUI_SUBMIT_PROMPT = Operation(
    "tui.submitPrompt", "POST", "/tui/submit-prompt", NoArguments, bool, "project.tui:submit_prompt"
)
TUI_CLEAR_PROMPT = Operation(
    "tui.clearPrompt", "POST", "/tui/clear-prompt", NoArguments, bool, "project.tui:clear_prompt"
)
TUI_OPEN_HELP = Operation(
    "tui.openHelp", "POST", "/tui/open-help", NoArguments, bool, "project.tui:open_help"
)
TUI_OPEN_SESSIONS = Operation(
    "tui.openSessions", "POST", "/tui/open-sessions", NoArguments, bool, "project.tui:open_sessions"
)
TUI_OPEN_THEMES = Operation(
    "tui.openThemes", "POST", "/tui/open-themes", NoArguments, bool, "project.tui:open_themes"
)
TUI_OPEN_MODELS = Operation(
    "tui.openModels", "POST", "/tui/open-models", NoArguments, bool, "project.tui:open_models"
)
TUI_EXECUTE = Operation(
    "tui.executeCommand",
    "POST",
    "/tui/execute-command",
    ExecuteCommand,
    bool,
    "project.tui:execute_command",
)
TUI_TOAST = Operation(
    "tui.showToast", "POST", "/tui/show-toast", ShowToast, bool, "project.tui:show_toast"
)
TUI_PUBLISH = Operation(
    "tui.publish",
    "POST",
    "/tui/publish",
    PublishTui,
    bool,
    "project.tui:publish_event",
    body="event",
)
TUI_SELECT = Operation(
    "tui.selectSession",
    "POST",
    "/tui/select-session",
    SessionId,
    bool,
    "project.tui:select_session",
)
