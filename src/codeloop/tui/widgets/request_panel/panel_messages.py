"""The messages that the request panel posts: answers, and what is meant for the prompt."""

from textual import events
from textual.message import Message

from codeloop.tui.state.session_view import Request
from codeloop.tui.widgets.request_panel.form import FormAnswer


# The namespace names the handlers of these messages as if the classes were defined
# within `RequestPanel`.
class Answered(Message, namespace="request_panel"):
    """The user answered; `actions/send.py` delivers it."""

    def __init__(self, request: Request, answer: FormAnswer) -> None:
        super().__init__()
        self.request = request
        self.answer = answer


class CommentWanted(Message, namespace="request_panel"):
    """The user wants to comment on lines of the plan that a question is about;
    `actions/work/plan.py` shows them.
    """


class InputForPrompt(Message, namespace="request_panel"):
    """Input that is meant for the prompt: keys from before the question could be read, pastes,
    commands, or own words.

    `is_command`: it starts a command, so the keys after it are meant for the prompt, too.
    """

    def __init__(self, event: events.Key | events.Paste, *, is_command: bool = False) -> None:
        super().__init__()
        self.event = event
        self.is_command = is_command
