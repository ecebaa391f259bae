"""How a turn ended, as both output formats tell it."""

from codeloop.cli.output.answer import Answer
from codeloop.cli.output.style import count, duration, spent
from codeloop.schema.event import Event, MessageUpdated, PartUpdated, SessionUpdated
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Session, Tokens
from codeloop.schema.part import Part, ToolPart, ToolStateError
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
    context: tuple[int, int] | None = None
    """How many tokens the conversation takes up, and how many the model takes; not told as JSON."""


def summary(outcome: Outcome) -> str:
    """Return the sums of a turn in a line."""
    used, window = outcome.context or (0, 0)
    full = [f"{count(used)} of {count(window)} context ({used * 100 // window} %)"] if used and window else []
    sums = [
        f"{outcome.steps} {'step' if outcome.steps == 1 else 'steps'}",
        *spent(outcome.tokens, outcome.cost),
        duration(outcome.duration_ms),
        *full,
        outcome.session_id,
    ]
    return " · ".join(sums)


def unfinished(reason: str, exit_code: int, message: str, *, session_id: str = "", seconds: float = 0.0) -> Outcome:
    """Return the outcome of a turn that never began or that broke off without an answer."""
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


def grown(before: Session, after: Session) -> tuple[Tokens, float]:
    """Return the tokens and dollars that a session's sums have grown by; nothing when they sank with messages."""
    cost = max((after.cost or 0.0) - (before.cost or 0.0), 0.0)
    return (after.tokens or NO_TOKENS).plus(before.tokens or NO_TOKENS, -1), cost


class Tally:
    """What is counted and kept of a session's events, from its making on.

    `session`: as it was before; without it the first event that holds it tells. Dollars and tokens are what the
    session's sums grow by, so that its subagents count, its title, and what was tried again. `prompt_id`: whose answer
    is kept; any, where none is named.
    """

    def __init__(self, session: Session | None = None, prompt_id: str | None = None) -> None:
        self._answer = Answer(prompt_id)
        self._denied: list[JSON] = []
        self._session = session
        self._cost = 0.0
        self._tokens = NO_TOKENS
        self._messages: dict[str, AssistantMessage] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no step was counted."""
        return not self._messages

    def take(self, event: Event) -> None:
        """Count an event of the session."""
        self._answer.take(event)
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self._messages[p.info.id] = p.info
            case SessionUpdated(properties=p):
                self.grow(p.info)
            case PartUpdated(properties=p):
                self._part(p.part)
            case _:
                pass

    def grow(self, session: Session) -> None:
        """Add what the session's sums have grown by since they were last seen."""
        if self._session is not None:
            tokens, cost = grown(self._session, session)
            self._cost, self._tokens = self._cost + cost, self._tokens.plus(tokens)
        self._session = session

    def _part(self, part: Part) -> None:
        match part:
            case ToolPart(state=ToolStateError(error=error, metadata=metadata), tool=tool) if (metadata or {}).get(
                "denied"
            ):
                self._denied.append({"tool": tool, "input": part.state.input, "reason": error})
            case _:
                pass

    def outcome(
        self, reason: str, code: int, message: str, *, session_id: str, seconds: float, window: int = 0
    ) -> Outcome:
        """Return the sums, and how it ended."""
        messages = self._messages.values()
        used = next((info.tokens.all for info in reversed(messages) if info.tokens.all and not info.summary), 0)
        return Outcome(
            type="result",
            session_id=session_id,
            reason=reason,
            exit_code=code,
            message=message,
            text=self._answer.text,
            cost=round(self._cost, 10),
            tokens=self._tokens,
            steps=len(self._messages),
            duration_ms=int(seconds * 1000),
            denied=self._denied,
            context=(used, window) if window else None,
        )
