"""Messages from clients to an attached terminal UI."""

from typing import Literal

from codeloop.schema.live_events import TuiEvent
from codeloop.schema.wire import Count, Wire


class PublishTui(Wire):
    """Sends one of the events that tell a terminal UI to do something; `event` is the whole body."""

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
