"""How a turn ended, as both output formats tell it."""

from functools import reduce

from codeloop.schema.event import Event, MessageUpdated, PartUpdated, SessionUpdated
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Tokens
from codeloop.schema.part import Part, TextPart, ToolError, ToolPart
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


class Tally:
    """What is counted and kept of a session's events, from its making on."""

    def __init__(self) -> None:
        self.text = ""
        self._denied: list[JSON] = []
        self._costs: list[float] = []
        self._messages: dict[str, AssistantMessage] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no step was counted."""
        return not self._messages

    def take(self, event: Event) -> None:
        """Count an event of the session."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self._messages[p.info.id] = p.info
            case SessionUpdated(properties=p):  # its sum holds what subagents cost as well
                self._costs.append(p.info.cost or 0.0)
            case PartUpdated(properties=p):
                self._part(p.part)
            case _:
                pass

    def _part(self, part: Part) -> None:
        match part:
            case TextPart(message_id=message_id, text=text) if message_id in self._messages and text:
                self.text = text
            case ToolPart(state=ToolError(error=error, metadata=metadata), tool=tool) if (metadata or {}).get("denied"):
                self._denied.append({"tool": tool, "input": part.state.input, "reason": error})
            case _:
                pass

    def outcome(self, reason: str, code: int, message: str, *, session_id: str, seconds: float) -> Outcome:
        """Give the sums, and how it ended."""
        messages = self._messages.values()
        return Outcome(
            type="result",
            session_id=session_id,
            reason=reason,
            exit_code=code,
            message=message,
            text=self.text,
            cost=round(self._costs[-1] - self._costs[0], 10) if self._costs else 0.0,
            tokens=reduce(Tokens.plus, (info.tokens for info in messages), NO_TOKENS),
            steps=len(messages),
            duration_ms=int(seconds * 1000),
            denied=self._denied,
        )
