"""Where the model's words go: a terminal shows them as they come, a pipe gets the answer alone, when it is complete."""

from collections.abc import Callable

from codeloop.cli.output.answer import Answer
from codeloop.cli.output.markdown import Markdown
from codeloop.cli.output.streams import Output
from codeloop.cli.output.style import has_colour
from codeloop.cli.output.width import columns_of
from codeloop.kit.terminal_text import inert
from codeloop.schema.event import Event, MessageUpdated, PartRemoved, PartUpdated
from codeloop.schema.live_events import PartDelta
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import TextPart, ToolPart

TAKEN_BACK = "What came above broke off and counts no longer: the model answers again."


class Streamed:
    """Words on a terminal, as they come; `note` marks what a retry takes back."""

    def __init__(self, output: Output, note: Callable[[str], object]) -> None:
        self._output = output
        self._note = note
        self._is_styled = has_colour(output.stream)
        self._open: dict[str, Markdown] = {}
        self._printed: dict[str, int] = {}

    def show(self, event: Event) -> None:
        """Show what an event adds."""
        match event:
            case PartDelta(properties=p) if p.part_id in self._open:
                self._grow(p.part_id, p.delta)
            case PartUpdated(properties=p) if isinstance(p.part, TextPart):
                self._text(p.part)
            case PartRemoved(properties=p) if self._printed.pop(p.part_id, 0):
                self._close(p.part_id)
                self._note(TAKEN_BACK)
            case _:
                pass

    def finish(self) -> None:
        """Show what is still held back."""
        for part_id in list(self._open):
            self._close(part_id)

    def _text(self, part: TextPart) -> None:
        if part.id not in self._open and len(part.text) == self._printed.get(part.id):
            return
        if part.id not in self._open:
            self._open[part.id] = Markdown(styled=self._is_styled, columns=columns_of(self._output))
        self._grow(part.id, part.text[self._printed.get(part.id, 0) :])
        if part.time is None or part.time.end is not None:
            self._close(part.id)

    def _grow(self, part_id: str, more: str) -> None:
        self._printed[part_id] = self._printed.get(part_id, 0) + len(more)
        if more:
            self._output.write(self._open[part_id].feed(inert(more)))

    def _close(self, part_id: str) -> None:
        if (markdown := self._open.pop(part_id, None)) is not None:
            self._output.write(markdown.end())
            if not self._output.is_at_start:
                self._output.write("\n")


class Withheld:
    """The answer on a pipe, once and whole; what else the model says is told by `narrate`."""

    def __init__(self, output: Output, narrate: Callable[[str], object], prompt_id: str | None) -> None:
        self._output = output
        self._narrate = narrate
        self._answer = Answer(prompt_id)
        self._told: dict[str, int] = {}
        """How much of each message was told, in characters; of one that is complete, all."""

    def show(self, event: Event) -> None:
        """Show what an event completes."""
        is_answer = self._answer.take(event)
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self._told.setdefault(p.info.id, 0)
                if is_answer:
                    self._write(self._more(p.info.id))
                elif p.info.time.completed is not None:
                    self._tell(p.info.id)
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart) and p.part.message_id in self._told:
                self._tell(p.part.message_id)
            case _:
                pass

    def finish(self) -> None:
        """Tell what was no answer any more."""
        for message_id in self._told:
            self._tell(message_id)

    def _write(self, text: str) -> None:
        if text:
            self._output.write(inert(text) + "\n")

    def _tell(self, message_id: str) -> None:
        if text := self._more(message_id).strip("\n"):
            self._narrate(text)

    def _more(self, message_id: str) -> str:
        text = self._answer.of(message_id)
        told, self._told[message_id] = self._told[message_id], len(text)
        return text[told:].removeprefix("\n") if told else text
