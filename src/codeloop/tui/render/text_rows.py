"""Cuts, wraps and justifies rows of plain text, for dialogs and panels. All widths are in cells."""

import re
from datetime import datetime

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.cells import width_of

_WORD = re.compile(r"\s*\S+")


def cut_line(text: str, width: int) -> str:
    """Return a text of one line in at most `width` cells; one that is cut ends in an ellipsis."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def wrap_text(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` cells, broken between words if possible.

    The blanks at the start of a paragraph are kept.
    """
    width = max(width, 1)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for number, word in enumerate(_WORD.findall(paragraph)):
            if line and cell_len(line) + cell_len(word) > width:
                lines.append(line)
                line = ""
            line += word if line or number == 0 else word.lstrip()
            if cell_len(line) > width:
                *complete_rows, line = chop_cells(line, width)
                lines += complete_rows
        lines.append(line)
    return lines


def justify(row: Row, right: Row, width: int) -> Row:
    """Return a row with one part at each end; if there is no room for both, only the left part."""
    gap = width - width_of(row) - width_of(right)
    return [*row, Segment(" " * gap), *right] if gap > 0 else row


def fill_background(row: Row, style: Style, width: int) -> Row:
    """Return a row with a background over the whole width."""
    pad = max(width - width_of(row), 0)
    return [Segment(s.text, (s.style or Style.null()) + style) for s in [*row, Segment(" " * pad)]]


def format_time(ms: int) -> str:
    """Return a time as day, month, hour and minute, for lists; `ms` since the epoch."""
    return f"{datetime.fromtimestamp(ms / 1000).astimezone():%d %b %H:%M}"
