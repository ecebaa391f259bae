"""Renders the items of a conversation as rows: `Renderer` has a function for each kind of item.

Prompts and tool calls have files of their own; texts of the model,
ends of turns and notices are drawn here.
"""

import time
from collections.abc import Callable

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from codeloop.client.formatting import (
    compute_elapsed_ms,
    describe_changes,
    describe_side_effects,
    format_cost,
    format_count,
    format_duration,
)
from codeloop.kit.text.readable_json import format_json_block
from codeloop.kit.text.terminal_text import escape_answer_controls, escape_controls, one_line
from codeloop.schema.errors import MessageAbortedError, get_error_message
from codeloop.schema.part import ToolStateRunning
from codeloop.tui.render.calls.call_renderer import draw_call
from codeloop.tui.render.calls.folded_calls import draw_fold
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import cut_line, prefix_rows, wrap_line
from codeloop.tui.render.markdown.markdown_document import MarkdownDocument
from codeloop.tui.render.markdown.prose_styles import ProseStyles
from codeloop.tui.render.prompt_rows import draw_prompt
from codeloop.tui.state.conversation_items import (
    EndItem,
    FoldItem,
    Item,
    NoticeItem,
    NoticeKind,
    PromptItem,
    ReasoningItem,
    SummaryItem,
    TextItem,
    ToolItem,
)

_TEXT_MARGIN = 2
"""Cells of margin on the left of a text."""
_NOTICE_COLOURS: dict[NoticeKind, str] = {
    "info": "info",
    "success": "success",
    "warning": "warning",
    "error": "error",
}
_MAX_NAME_LENGTH = 40
"""Characters of an agent's or a model's name."""


class Renderer:
    """Renders the items of one conversation for one canvas;
    `now`: the time in seconds since the epoch.
    """

    def __init__(self, canvas: Canvas, now: Callable[[], float] = time.time) -> None:
        self._canvas = canvas
        self._now = now
        self._texts = _TextRenderer(canvas)

    def render(self, item: Item) -> list[Row]:
        """Return the rows of an item, none of them wider than the canvas;
        empty if nothing of the item is shown.
        """
        match item:
            case PromptItem():
                return draw_prompt(item, self._canvas)
            case TextItem():
                return self._texts.render_answer(item)
            case ReasoningItem():
                return _draw_reasoning(item, self._canvas, self._texts)
            case ToolItem():
                return draw_call(item, self._canvas, int(self._now() * 1000))
            case FoldItem():
                return draw_fold(item, self._canvas)
            case SummaryItem():
                return _draw_summary(item, self._canvas, self._texts)
            case EndItem():
                return _draw_end(item, self._canvas)
            case NoticeItem():
                return _draw_notice(item, self._canvas)

    def shows_time(self, item: Item) -> bool:
        """Return whether an item shows a running time,
        so that it must be rendered again as time passes.
        """
        return isinstance(item, ToolItem) and isinstance(item.part.state, ToolStateRunning)

    def forget(self, key: str) -> None:
        """Drop the state kept for an item."""
        self._texts.forget(key)


class _TextRenderer:
    """Renders the model's texts: answers, thinking and summaries.

    Of a text that is still being written, it keeps the finished rows.
    """

    def __init__(self, canvas: Canvas) -> None:
        self._room = max(canvas.width - _TEXT_MARGIN, 2)
        self._answer_styles = ProseStyles(canvas.styles)
        self._thinking_styles = ProseStyles(canvas.styles, "text_muted", "italic", is_quiet=True)
        self._summary_styles = ProseStyles(canvas.styles, "text_muted", is_quiet=True)
        self._documents: dict[str, MarkdownDocument] = {}

    def render_answer(self, item: TextItem) -> list[Row]:
        """Return an answer as rows."""
        # An answer that is JSON is indented once it is complete; before that, it can't be parsed.
        text = item.part.text if item.is_live else format_json_block(item.part.text)
        return self._render(item.key, text, self._answer_styles, is_live=item.is_live)

    def render_thinking(self, item: ReasoningItem) -> list[Row]:
        """Return all of the thinking as rows."""
        return self._render(item.key, item.part.text, self._thinking_styles, is_live=item.is_live)

    def render_summary(self, item: SummaryItem) -> list[Row]:
        """Return a summary as rows."""
        return self._render(item.key, item.text, self._summary_styles, is_live=item.is_live)

    def forget(self, key: str) -> None:
        """Drop the state kept for a text."""
        self._documents.pop(key, None)

    def _render(self, key: str, text: str, prose: ProseStyles, *, is_live: bool) -> list[Row]:
        # A text that does not continue the one before, such as a stored one that differs,
        # is rendered anew.
        document = self._documents.get(key)
        if document is None or not document.is_continued_by(text):
            document = MarkdownDocument(prose, self._room, Segment(" " * _TEXT_MARGIN))
        if is_live:
            self._documents[key] = document
            return document.render_growing(text)
        self.forget(key)
        return document.render_complete(text)


def _draw_reasoning(item: ReasoningItem, canvas: Canvas, texts: _TextRenderer) -> list[Row]:
    """Return the rows of the model's thinking; none if thinking is hidden.

    A closed item shows the first line, or while the model thinks, the last one;
    an open item shows all.
    """
    text = item.part.text.strip()
    if not canvas.thinking or not text:
        return []
    click = Style(meta={"toggle": item.key})
    style, muted_style = (
        canvas.styles.of("text_muted", "italic") + click,
        canvas.styles.of("text_muted") + click,
    )
    title, span = "Thinking", item.part.time
    if span.end is not None:
        title = f"Thought for {format_duration(compute_elapsed_ms(span.start, span.end))}"
    mark = Segment("▾ " if item.is_open else "▸ ", muted_style)
    if item.is_open:
        return [cut_line([mark, Segment(title, style)], canvas.width), *texts.render_thinking(item)]
    line_count = text.count("\n") + 1
    note = Segment(f"  {line_count} lines" if line_count > 1 else "", muted_style)
    label = Segment(f"{title}: ", style)
    # While it is written, the last line shows that there is progress.
    line = text.rpartition("\n")[2] if item.is_live else text.partition("\n")[0]
    # Models begin lines of their thinking with the marks of emphasis or headings.
    excerpt = Segment(" ".join(escape_answer_controls(line).split()).strip("*# "), style)
    room = canvas.width - _TEXT_MARGIN - len(label.text) - len(note.text)
    return [cut_line([mark, label, *cut_line([excerpt], room), note], canvas.width)]


def _draw_summary(item: SummaryItem, canvas: Canvas, texts: _TextRenderer) -> list[Row]:
    """Return the rule that marks where the conversation was compacted,
    and below it the summary if the item is open.
    """
    style = canvas.styles.of("text_muted") + Style(meta={"toggle": item.key})
    words = (
        "compacting" if item.is_live else f"{'▾' if item.is_open else '▸'} conversation compacted"
    )
    line = canvas.styles.of("border")
    side = max((canvas.width - len(words) - 2) // 2, 1)
    rule = [Segment("─" * side, line), Segment(f" {words} ", style), Segment("─" * side, line)]
    rows = [cut_line(rule, canvas.width)]
    if item.is_open and item.text.strip():
        rows += texts.render_summary(item)
    return rows


def _draw_end(item: EndItem, canvas: Canvas) -> list[Row]:
    """Return the rows of a turn's end: its error, if any; agent, model and duration;
    tokens and cost.
    """
    error = item.message.error
    rows: list[Row] = []
    # A turn that the user stopped has no error: the facts below say that it was stopped.
    if error is not None and not isinstance(error, MessageAbortedError):
        message = get_error_message(error)
        rows += _draw_notice_text(f"{message}\n{_suggest_command(message)}", "error", canvas)
    if item.message.facts is not None and (sentences := describe_side_effects(item.message.facts)):
        rows += _draw_notice_text("\n".join(sentences), "warning", canvas)
    style, room = canvas.styles.of("text_muted"), max(canvas.width - 2, 4)
    for line in _join_facts(_list_turn_facts(item), _list_usage_facts(item), room):
        rows += prefix_rows(wrap_line([Segment(line, style)], room), Segment("  "))
    return rows


def _join_facts(turn_facts: list[str], usage_facts: list[str], room: int) -> list[str]:
    """Join the facts with dots, in one line; without room for that,
    both kinds of facts begin a line.
    """
    line = " · ".join([*turn_facts, *usage_facts])
    if cell_len(line) <= room:
        return [line]
    return [*_fill_lines(turn_facts, room), *_fill_lines(usage_facts, room)]


def _fill_lines(words: list[str], room: int) -> list[str]:
    """Join words with dots, as many in a line as there is room for."""
    lines = words[:1]
    for word in words[1:]:
        longer = f"{lines[-1]} · {word}"
        if cell_len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _list_turn_facts(item: EndItem) -> list[str]:
    """Return the words for the agent, the model, the duration, the steps,
    the changed files and the checks.
    """
    message = item.message
    facts = [
        one_line(message.agent, _MAX_NAME_LENGTH),
        one_line(message.model_id, _MAX_NAME_LENGTH),
        "stopped" if isinstance(message.error, MessageAbortedError) else "",
        format_duration(item.ms),
        f"{item.steps} steps" if item.steps > 1 else "",
        *(describe_changes(message.facts) if message.facts is not None else ()),
    ]
    return [fact for fact in facts if fact]


def _list_usage_facts(item: EndItem) -> list[str]:
    """Return the words for tokens and cost; none for a turn that was refused or killed,
    which has no counts.
    """
    estimate_mark = "~" if item.is_estimated else ""
    facts: list[str] = []
    if item.tokens_in or item.tokens_out:
        cache_note = f" ({format_count(item.cached_tokens)} cached)" if item.cached_tokens else ""
        counts = (
            f"{format_count(item.tokens_in)} in{cache_note}, {format_count(item.tokens_out)} out"
        )
        facts.append(f"{estimate_mark}{counts}")
    if item.cost:
        facts.append(f"{estimate_mark}{format_cost(item.cost)}")
    return facts


def _suggest_command(message: str) -> str:
    """Return how to do in the UI what an error suggests doing with a command of the shell;
    "": it suggests none.
    """
    return "Here /connect does that." if "codeloop auth login" in message else ""


def _draw_notice(item: NoticeItem, canvas: Canvas) -> list[Row]:
    return _draw_notice_text(item.text, _NOTICE_COLOURS[item.kind], canvas)


def _draw_notice_text(text: str, colour: str, canvas: Canvas) -> list[Row]:
    """Return a text as rows with a bar in a colour on their left."""
    style = canvas.styles.of("text")
    rows = [
        row
        for line in escape_controls(text.strip("\n")).split("\n")
        for row in wrap_line([Segment(line.expandtabs(4), style)], max(canvas.width - 2, 4))
    ]
    return prefix_rows(rows, Segment("▌ ", canvas.styles.of(colour)))
