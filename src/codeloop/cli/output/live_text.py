"""`LiveText`: prints the model's text on a terminal while it streams in,
with its Markdown rendered.
"""

from collections.abc import Callable

from codeloop.cli.output.markdown import Markdown
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.output.style import has_colour
from codeloop.kit.text.terminal_text import escape_answer_controls
from codeloop.schema.event import Event, PartRemoved, PartUpdated
from codeloop.schema.live_events import PartDelta
from codeloop.schema.part import TextPart

DISCARDED_NOTE = "The text above broke off and is discarded; the model answers again."


class LiveText:
    """Prints text parts as they grow. `note`: called with a line for the user when a
    retry discards printed text.
    """

    def __init__(self, output: OutputStream, note: Callable[[str], object]) -> None:
        self._output = output
        self._note = note
        self._is_styled = has_colour(output.stream)
        self._renderers: dict[str, Markdown] = {}
        self._printed_lengths: dict[str, int] = {}
        # The last printed character of each part: it decides whether a joiner
        # that follows is escaped.
        self._last_chars: dict[str, str] = {}

    def show(self, event: Event) -> None:
        """Print the text that an event adds."""
        match event:
            case PartDelta(properties=p) if p.part_id in self._renderers:
                self._append(p.part_id, p.delta)
            case PartUpdated(properties=p) if isinstance(p.part, TextPart):
                self._show_text(p.part)
            case PartRemoved(properties=p) if self._printed_lengths.pop(p.part_id, 0):
                self._last_chars.pop(p.part_id, None)
                self._close(p.part_id)
                self._note(DISCARDED_NOTE)
            case _:
                pass

    def finish(self) -> None:
        """Print the rest of texts, which the renderers hold back until they know more."""
        for part_id in list(self._renderers):
            self._close(part_id)

    def _show_text(self, part: TextPart) -> None:
        # A part that was printed to its end may be updated again.
        if part.id not in self._renderers and len(part.text) == self._printed_lengths.get(part.id):
            return
        if part.id not in self._renderers:
            self._renderers[part.id] = Markdown(
                styled=self._is_styled, columns=self._output.columns
            )
        self._append(part.id, part.text[self._printed_lengths.get(part.id, 0) :])
        if part.time is None or part.time.end is not None:
            self._close(part.id)

    def _append(self, part_id: str, text: str) -> None:
        """Print the next piece of a part's text, as far as it can be rendered."""
        self._printed_lengths[part_id] = self._printed_lengths.get(part_id, 0) + len(text)
        if not text:
            return
        escaped_text = escape_answer_controls(text, self._last_chars.get(part_id, ""))
        self._output.write(self._renderers[part_id].feed(escaped_text))
        self._last_chars[part_id] = text[-1]

    def _close(self, part_id: str) -> None:
        """End a part's text on the screen, if it has not ended yet."""
        if (markdown := self._renderers.pop(part_id, None)) is not None:
            self._output.write(markdown.end())
            if not self._output.is_at_start:
                self._output.write("\n")
