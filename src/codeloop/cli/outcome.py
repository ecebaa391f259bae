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


@dataclass(slots=True)
class Tally:
    """What is counted while a turn runs."""

    steps: int = 0
    cost: float = 0.0
    tokens: Tokens = NO_TOKENS
    text: str = ""
    denied: list[JSON] = field(default_factory=list[JSON])
