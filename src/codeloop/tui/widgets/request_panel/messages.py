"""The messages that the panel of questions posts."""

from textual import events
from textual.message import Message

from codeloop.tui.widgets.request_panel.form import FormAnswer, Request


class Answered(Message, namespace="request_panel"):
    """The user answered; `send` delivers it."""

    def __init__(self, request: Request, answer: FormAnswer) -> None:
        super().__init__()
        self.request = request
        self.answer = answer


class Early(Message, namespace="request_panel"):
    """A key or a paste from before the question could be read, so not meant for the panel.

    `is_command`: it starts a command, so later keys are for the prompt, too.
    """

    def __init__(self, event: events.Key | events.Paste, *, is_command: bool = False) -> None:
        super().__init__()
        self.event = event
        self.is_command = is_command
