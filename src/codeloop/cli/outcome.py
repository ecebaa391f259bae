"""How a turn ended, as both output formats tell it."""

from dataclasses import dataclass, field

from codeloop.schema.message import NO_TOKENS, Tokens
from codeloop.schema.wire import JSON, Wire


class Outcome(Wire):
    """The last line of `--format json`; always printed. `cost` in dollars, `duration_ms` of the whole turn."""

    type: str
    reason: str
    exit_code: int
    message: str
    text: str
    cost: float
    tokens: Tokens
    steps: int
    duration_ms: int
    denied: list[JSON]
    session_id: str = ""


def unfinished(reason: str, exit_code: int, message: str, *, session_id: str = "", seconds: float = 0.0) -> Outcome:
    """Give the outcome of a turn that never began or that broke off without an answer."""
    return Outcome(
        type="result",
        reason=reason,
        exit_code=exit_code,
        message=message,
        text="",
        cost=0.0,
        tokens=NO_TOKENS,
        steps=0,
        duration_ms=int(seconds * 1000),
        denied=[],
        session_id=session_id,
    )


@dataclass(slots=True)
class Tally:
    """What is counted while a turn runs."""

    steps: int = 0
    cost: float = 0.0
    tokens: Tokens = NO_TOKENS
    text: str = ""
    denied: list[JSON] = field(default_factory=list[JSON])
