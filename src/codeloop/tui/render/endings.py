"""Renders the end of a turn, and the program's notices."""

from rich.cells import cell_len
from rich.segment import Segment

from codeloop.client.formatting import format_cost, format_count, format_duration
from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.schema.errors import MessageAbortedError, get_error_message
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.cells import prefix_rows, wrap_line
from codeloop.tui.state.items import EndItem, NoticeItem, NoticeLook

_COLOURS: dict[NoticeLook, str] = {"info": "info", "success": "success", "warning": "warning", "error": "error"}
_MAX_NAME = 40
"""Characters of an agent's or a model's name."""


def draw_end(item: EndItem, canvas: Canvas) -> list[Row]:
    """Return the rows of a turn's end: its error, if any; agent, model and duration; tokens and cost."""
    error = item.message.error
    rows: list[Row] = []
    if error is not None and not isinstance(error, MessageAbortedError):
        message = get_error_message(error)
        rows += _text_rows(f"{message}\n{_advise(message)}", "error", canvas)
    style, room = canvas.styles.of("text_muted"), max(canvas.width - 2, 4)
    sums = [row for line in _join_words(*_describe_use(item), room) for row in wrap_line([Segment(line, style)], room)]
    return [*rows, *prefix_rows(sums, Segment("  "))]


def _join_words(who: list[str], used: list[str], room: int) -> list[str]:
    """Join two lists of words with dots, in one line, or if there is no room, in lines of their own."""
    if cell_len(line := " · ".join([*who, *used])) <= room:
        return [line]
    return [*_fill_lines(who, room), *_fill_lines(used, room)]


def _fill_lines(words: list[str], room: int) -> list[str]:
    lines = words[:1]
    for word in words[1:]:
        longer = f"{lines[-1]} · {word}"
        if cell_len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _describe_use(item: EndItem) -> tuple[list[str], list[str]]:
    """Return the words for agent, model, duration and steps, and those for tokens and cost."""
    message = item.message
    about = "~" if item.is_estimated else ""
    cache_note = f" ({format_count(item.cached_tokens)} cached)" if item.cached_tokens else ""
    who = [
        one_line(message.agent, _MAX_NAME),
        one_line(message.model_id, _MAX_NAME),
        *(["stopped"] if isinstance(message.error, MessageAbortedError) else []),
        format_duration(item.ms),
        *([f"{item.steps} steps"] if item.steps > 1 else []),
    ]
    tokens = f"{about}{format_count(item.tokens_in)} in{cache_note}, {format_count(item.tokens_out)} out"
    used = [  # a turn that was refused or killed has no counts
        *([tokens] if item.tokens_in or item.tokens_out else []),
        *([about + format_cost(item.cost)] if item.cost else []),
    ]
    return [word for word in who if word], used


def _advise(message: str) -> str:
    """Return how to do in the UI what an error suggests to do with a command of the shell."""
    return "Here /connect does that." if "codeloop auth login" in message else ""


def draw_notice(item: NoticeItem, canvas: Canvas) -> list[Row]:
    """Render a notice of the program."""
    return _text_rows(item.text, _COLOURS[item.look], canvas)


def _text_rows(text: str, colour: str, canvas: Canvas) -> list[Row]:
    style = canvas.styles.of("text")
    rows = [
        row
        for line in escape_controls(text.strip("\n")).split("\n")
        for row in wrap_line([Segment(line.expandtabs(4), style)], max(canvas.width - 2, 4))
    ]
    return prefix_rows(rows, Segment("▌ ", canvas.styles.of(colour)))
