"""The messages that the panel of questions posts."""

from textual import events
from textual.message import Message

from codeloop.tui.widgets.request_panel.form import FormAnswer, Request


class Answered(Message, namespace="request_panel"):
    """The user answered; `send` carries it out."""

    def __init__(self, request: Request, answer: FormAnswer) -> None:
        super().__init__()
        self.request = request
        self.answer = answer


class Early(Message, namespace="request_panel"):
    """A key or a paste that was not meant for the panel, since it came before the question could be read.

    `is_command`: it begins a command, so what is typed next is for the prompt, too.
    """

    def __init__(self, event: events.Key | events.Paste, *, is_command: bool = False) -> None:
        super().__init__()
        self.event = event
        self.is_command = is_command
