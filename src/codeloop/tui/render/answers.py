"""What a model writes: its answer, its thinking, and the summary of a compacted conversation."""

from rich.segment import Segment
from rich.style import Style

from codeloop.client.display.numbers import duration
from codeloop.kit.terminal_text import inert_answer
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.layout import cut, expand_tabs, framed, wrap
from codeloop.tui.state.items import ReasoningItem, SummaryItem, TextItem

MARGIN = 2


def text_rows(item: TextItem, canvas: Canvas) -> list[Row]:
    """Return an answer as rows."""
    return framed(_plain(item.part.text, canvas, canvas.styles.of("markdown_text")), Segment(" " * MARGIN))


def _plain(text: str, canvas: Canvas, style: Style) -> list[Row]:
    lines = inert_answer(text.strip("\n")).split("\n")
    return [row for line in lines for row in wrap([Segment(expand_tabs(line), style)], max(canvas.width - MARGIN, 4))]


def reasoning_rows(item: ReasoningItem, canvas: Canvas) -> list[Row]:
    """Return the thinking: its first line while it is closed, else all of it; nothing if it is not wanted."""
    text = item.part.text.strip()
    if not canvas.thinking or not text:
        return []
    muted = canvas.styles.of("text_muted", "italic")
    click = Style(meta={"toggle": item.key})
    time = item.part.time
    took = f" {duration(time.end - time.start)}" if time.end is not None else ""
    head = Segment(f"{'▾' if item.is_open else '▸'} ", canvas.styles.of("text_muted") + click)
    title = f"Thought{took}" if time.end is not None else "Thinking"
    rows = _plain(text, canvas, muted)
    if item.is_open:
        return [cut([head, Segment(title, muted + click)], canvas.width), *framed(rows, Segment(" " * MARGIN))]
    lines = text.count("\n") + 1
    more = f"  {lines} lines" if lines > 1 else ""
    label = Segment(f"{title}: ", muted + click)
    first = [Segment(" ".join(inert_answer(text.partition("\n")[0]).split()).strip("*# "), muted + click)]
    room = canvas.width - MARGIN - len(label.text) - len(more)
    return [cut([head, label, *cut(first, room), Segment(more, canvas.styles.of("text_muted") + click)], canvas.width)]


def summary_rows(item: SummaryItem, canvas: Canvas) -> list[Row]:
    """Return where the conversation was compacted, and the summary if it is open."""
    muted = canvas.styles.of("text_muted") + Style(meta={"toggle": item.key})
    words = "compacting" if item.is_live else f"{'▾' if item.is_open else '▸'} conversation compacted"
    line = canvas.styles.of("border")
    side = max((canvas.width - len(words) - 2) // 2, 1)
    rule = [Segment("─" * side, line), Segment(f" {words} ", muted), Segment("─" * side, line)]
    rows = [cut(rule, canvas.width)]
    if item.is_open and item.text.strip():
        rows += framed(_plain(item.text, canvas, canvas.styles.of("text_muted")), Segment(" " * MARGIN))
    return rows
