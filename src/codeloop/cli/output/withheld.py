"""What a pipe gets of the model's text: the complete answer, once."""

from collections.abc import Callable

from codeloop.cli.output.result import FinalAnswer
from codeloop.cli.output.streams import Output
from codeloop.kit.terminal_text import escape_answer_controls
from codeloop.schema.event import Event, MessageUpdated, PartUpdated
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import ToolPart


class Withheld:
    """The answer on a pipe, once and whole; other text of the model goes to `narrate`. No output: not the answer."""

    def __init__(self, output: Output | None, narrate: Callable[[str], object], prompt_id: str | None) -> None:
        self._output = output
        self._narrate = narrate
        self._answer = FinalAnswer(prompt_id)
        self._shown_lengths: dict[str, int] = {}
        """How many characters of each message were shown."""

    def show(self, event: Event) -> None:
        """Show what an event completes."""
        is_answer = self._answer.take(event)
        match event:
            case MessageUpdated(properties=p) if isinstance(p.info, AssistantMessage):
                self._shown_lengths.setdefault(p.info.id, 0)
                if is_answer:
                    self._write(self._unshown_text(p.info.id))
                elif p.info.time.completed is not None:
                    self._narrate_rest(p.info.id)
            case PartUpdated(properties=p) if isinstance(p.part, ToolPart) and p.part.message_id in self._shown_lengths:
                self._narrate_rest(p.part.message_id)
            case _:
                pass

    def finish(self) -> None:
        """Show what did not become an answer."""
        for message_id in self._shown_lengths:
            self._narrate_rest(message_id)

    def _write(self, text: str) -> None:
        if text and self._output is not None:
            self._output.write(escape_answer_controls(text) + "\n")

    def _narrate_rest(self, message_id: str) -> None:
        if text := self._unshown_text(message_id).strip("\n"):
            self._narrate(text)

    def _unshown_text(self, message_id: str) -> str:
        text = self._answer.of(message_id)
        start, self._shown_lengths[message_id] = self._shown_lengths[message_id], len(text)
        return text[start:].removeprefix("\n") if start else text
