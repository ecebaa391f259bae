"""Renders the model's texts: answers, thinking, and summaries of a compacted conversation."""

from rich.segment import Segment
from rich.style import Style

from codeloop.client.formatting import compute_elapsed_ms, format_duration
from codeloop.kit.terminal_text import escape_answer_controls, format_json_block
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut_line
from codeloop.tui.render.markdown.document import MarkdownDocument
from codeloop.tui.render.markdown.looks import ProseStyles
from codeloop.tui.state.items import ReasoningItem, SummaryItem, TextItem

MARGIN = 2
"""Cells of margin on the left of a text."""


class LiveTexts:
    """Renders texts that the model is still writing: keeps the finished rows, and renders only the end again."""

    def __init__(self, canvas: Canvas) -> None:
        self._room = max(canvas.width - MARGIN, 2)
        self._answer = ProseStyles(canvas.styles)
        self._thinking_styles = ProseStyles(canvas.styles, "text_muted", "italic", is_quiet=True)
        self._summary = ProseStyles(canvas.styles, "text_muted", is_quiet=True)
        self._documents: dict[str, MarkdownDocument] = {}

    def render_answer(self, item: TextItem) -> list[Row]:
        """Return an answer as rows."""
        text = item.part.text if item.is_live else format_json_block(item.part.text)
        return self._rows(item.key, text, self._answer, is_live=item.is_live)

    def render_thinking(self, item: ReasoningItem) -> list[Row]:
        """Return all of the thinking as rows."""
        return self._rows(item.key, item.part.text, self._thinking_styles, is_live=item.is_live)

    def render_summary(self, item: SummaryItem) -> list[Row]:
        """Return a summary as rows."""
        return self._rows(item.key, item.text, self._summary, is_live=item.is_live)

    def forget(self, key: str) -> None:
        """Drop the state kept for a text."""
        self._documents.pop(key, None)

    def _rows(self, key: str, text: str, prose: ProseStyles, *, is_live: bool) -> list[Row]:
        document = self._documents.get(key)
        if document is None or not document.follows(text):
            document = MarkdownDocument(prose, self._room, Segment(" " * MARGIN))
        if is_live:
            self._documents[key] = document
            return document.grow(text)
        self.forget(key)
        return document.finish(text)


def draw_reasoning(item: ReasoningItem, canvas: Canvas, texts: LiveTexts) -> list[Row]:
    """Return the rows of the model's thinking; none if thinking is hidden.

    A closed item shows the first line, or while the model thinks, the last one; an open item shows all.
    """
    text = item.part.text.strip()
    if not canvas.thinking or not text:
        return []
    style = canvas.styles.of("text_muted", "italic")
    click = Style(meta={"toggle": item.key})
    time = item.part.time
    took = f" for {format_duration(compute_elapsed_ms(time.start, time.end))}" if time.end is not None else ""
    head = Segment(f"{'▾' if item.is_open else '▸'} ", canvas.styles.of("text_muted") + click)
    title = f"Thought{took}" if time.end is not None else "Thinking"
    if item.is_open:
        return [cut_line([head, Segment(title, style + click)], canvas.width), *texts.render_thinking(item)]
    lines = text.count("\n") + 1
    more = f"  {lines} lines" if lines > 1 else ""
    label = Segment(f"{title}: ", style + click)
    line = text.rpartition("\n")[2] if item.is_live else text.partition("\n")[0]
    first = [Segment(" ".join(escape_answer_controls(line).split()).strip("*# "), style + click)]
    room = canvas.width - MARGIN - len(label.text) - len(more)
    return [
        cut_line(
            [head, label, *cut_line(first, room), Segment(more, canvas.styles.of("text_muted") + click)], canvas.width
        )
    ]


def draw_summary(item: SummaryItem, canvas: Canvas, texts: LiveTexts) -> list[Row]:
    """Return the rule that marks where the conversation was compacted, and below it the summary if the item is open."""
    style = canvas.styles.of("text_muted") + Style(meta={"toggle": item.key})
    words = "compacting" if item.is_live else f"{'▾' if item.is_open else '▸'} conversation compacted"
    line = canvas.styles.of("border")
    side = max((canvas.width - len(words) - 2) // 2, 1)
    rule = [Segment("─" * side, line), Segment(f" {words} ", style), Segment("─" * side, line)]
    rows = [cut_line(rule, canvas.width)]
    if item.is_open and item.text.strip():
        rows += texts.render_summary(item)
    return rows
