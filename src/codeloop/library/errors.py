"""What goes wrong; each message says what to do."""

from codeloop.library.events import Answer
from codeloop.schema.errors import CodeloopError


class TurnFailed(CodeloopError):
    """A turn did not come to its end: the service failed, or somebody stopped it."""

    def __init__(self, message: str, answer: Answer[None]) -> None:
        super().__init__(message)
        self.answer = answer
        """What there was until then; its `reason` says why it ended."""


class LimitReached(TurnFailed):
    """A turn reached one of its limits: steps, cost, tokens or time."""


class WrongResult(CodeloopError):
    """The model's answer is no value of the type that was asked for."""

    def __init__(self, message: str, answer: Answer[None]) -> None:
        super().__init__(message)
        self.answer = answer
        """The answer without the value."""


class ToolRefused(CodeloopError):
    """A rule or a user refused what a function asked for with `ctx.ask`: the call has ended."""
