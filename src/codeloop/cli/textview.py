"""A turn as text: the answer on stdout, everything about it on stderr."""

from codeloop.cli.outcome import Outcome
from codeloop.cli.output import ERASE, Output
from codeloop.cli.style import count, dollars, duration, has_colour, paint
from codeloop.cli.toolview import heading, lines
from codeloop.kit.plain import inert
from codeloop.schema.event import Event, MessageUpdated, PartUpdated
from codeloop.schema.ids import now_ms
from codeloop.schema.live import PartDelta, Retry, StatusChanged, ToastShown
from codeloop.schema.message import UserMessage
from codeloop.schema.part import ReasoningPart, TextPart, ToolCompleted, ToolError, ToolPart, ToolRunning


class TextView:
    """Streams text as it comes; shows a running call on a line that its result then takes the place of."""

    def __init__(self, answer: Output, progress: Output, *, thinking: bool = False) -> None:
        self._answer = answer
        self._progress = progress
        self._thinking = thinking
        self._colour = has_colour(progress.stream)
        self._live = progress.stream.isatty()
        self._users: set[str] = set()
        self._printed: dict[str, int] = {}
        self._kinds: dict[str, type[TextPart | ReasoningPart]] = {}
        self._shown: set[str] = set()
        self._transient = False

    def show(self, event: Event) -> None:
        """Show one event of the session."""
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, UserMessage):
                self._users.add(p.info.id)
            case PartUpdated(properties=p) if p.part.message_id not in self._users:
                self._part(p.part)
            case PartDelta(properties=p) if p.part_id in self._kinds:
                self._grow(p.part_id, p.delta)
            case ToastShown(properties=p):
                self.note(inert(p.message))
            case StatusChanged(properties=p) if isinstance(p.status, Retry):
                wait = max(0, p.status.next - now_ms())
                reason = inert(p.status.message)
                self.note(f"{reason} Trying again in {duration(wait)} (attempt {p.status.attempt}).")
            case _:
                pass

    def note(self, text: str) -> None:
        """Write a line to stderr."""
        self._erase()
        self._progress.write(paint(text, "yellow", colour=self._colour) + "\n")

    def finish(self, outcome: Outcome) -> None:
        """Write the sums, and why it ended when it is not simply done."""
        self._erase()
        if outcome.message:
            look = "red" if outcome.exit_code else "yellow"
            self._progress.write(paint(f"codeloop: {inert(outcome.message)}", look, colour=self._colour) + "\n")
        if not outcome.session_id:
            return
        tokens = outcome.tokens
        cached = f" ({count(tokens.cache.read)} cached)" if tokens.cache.read else ""
        whole = tokens.input + tokens.cache.read + tokens.cache.write
        sums = [
            f"{outcome.steps} {'step' if outcome.steps == 1 else 'steps'}",
            f"{count(whole)} in{cached}, {count(tokens.output)} out",
            dollars(outcome.cost),
            duration(outcome.duration_ms),
            outcome.session_id,
        ]
        self._progress.write(paint(" · ".join(sums), "dim", colour=self._colour) + "\n")

    def _part(self, part: object) -> None:
        match part:
            case TextPart() if not part.synthetic:
                self._text(part)
            case ReasoningPart() if self._thinking:
                self._text(part)
            case ToolPart(state=ToolRunning()) if self._live:
                self._erase()
                self._progress.write(paint(f"… {heading(part)}", "dim", colour=self._colour))
                self._transient = True
            case ToolPart(state=ToolCompleted() | ToolError()) if part.id not in self._shown:
                self._shown.add(part.id)
                self._erase()
                self._progress.write("\n".join(lines(part, colour=self._colour)) + "\n")
            case _:
                pass

    def _text(self, part: TextPart | ReasoningPart) -> None:
        if part.id not in self._kinds:
            self._erase()
            self._kinds[part.id] = type(part)
        self._grow(part.id, part.text[self._printed.get(part.id, 0) :])
        if part.time is None or part.time.end is not None:
            del self._kinds[part.id]
            if part.text and not part.text.endswith("\n"):
                self._write(type(part), "\n")

    def _grow(self, part_id: str, more: str) -> None:
        if more:
            self._printed[part_id] = self._printed.get(part_id, 0) + len(more)
            self._write(self._kinds[part_id], inert(more))

    def _write(self, kind: type[TextPart] | type[ReasoningPart], text: str) -> None:
        if kind is TextPart:
            self._answer.write(text)
        else:
            self._progress.write(paint(text, "dim", colour=self._colour))

    def _erase(self) -> None:
        if self._transient:
            self._progress.write(ERASE)
            self._transient = False
