"""The exceptions of the library; each message says what to do."""

from codeloop.library.events import Answer
from codeloop.schema.errors import CodeloopError


class TurnFailed(CodeloopError):
    """A turn ended early: the model's service failed, or the turn was stopped."""

    def __init__(self, message: str, answer: Answer[None]) -> None:
        super().__init__(message)
        self.answer = answer
        """The answer as far as it came; its `reason` says why the turn ended."""


class LimitReached(TurnFailed):
    """A turn reached one of its limits: steps, cost, tokens or time."""


class WrongResult(CodeloopError):
    """The model's answer is not a value of the requested type."""

    def __init__(self, message: str, answer: Answer[None]) -> None:
        super().__init__(message)
        self.answer = answer
        """The answer, without a result."""


class ToolRefused(CodeloopError):
    """A rule or the user refused what a function requested with `ctx.ask`: its call has ended."""


class ProjectClosed(CodeloopError):
    """The project was used after the end of its `async with` block."""
