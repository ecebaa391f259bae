"""Measures, wraps, cuts and pads text in terminal cells, without ever breaking a grapheme.

A line is a text of any width, in segments of one style each; a row is a part of it that fits the screen.
"""

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from codeloop.tui.render.canvas import Row
from codeloop.tui.render.graphemes import split_graphemes

TAB_WIDTH = 4
"""Cells between two tab stops."""
# In Chinese and Japanese, a row must not end with one of these.
_OPENING_BRACKETS = "\uff08\u300c\u300e\u3010\u3008\u300a"
_WORD_WITH_BLANKS = re.compile(r"\s*\S+")


def measure_row(row: Iterable[Segment]) -> int:
    """Return how many cells a row takes."""
    return sum(cell_len(segment.text) for segment in row)


def expand_tabs(text: str) -> str:
    """Return a line with each tab replaced by spaces up to the next multiple of `TAB_WIDTH` cells."""
    if "\t" not in text:
        return text
    # ASCII has one cell and one grapheme for each character, so that it needs no slow measuring; so below.
    if text.isascii():
        return text.expandtabs(TAB_WIDTH)
    line_text, *pieces = text.split("\t")
    for piece in pieces:
        line_text += " " * (TAB_WIDTH - cell_len(line_text) % TAB_WIDTH) + piece
    return line_text


def wrap_line(line: Sequence[Segment], width: int) -> list[Row]:
    """Return a line in rows of at most `width` cells, broken at spaces if there are any; these are dropped."""
    return _break_line(line, width, drops_spaces=True)


def fold_line(line: Sequence[Segment], width: int) -> list[Row]:
    """Return a line in rows of at most `width` cells, broken after spaces if there are any; every space is kept."""
    return _break_line(line, width, drops_spaces=False)


def _break_line(line: Sequence[Segment], width: int, *, drops_spaces: bool) -> list[Row]:
    """Break a line into rows; `drops_spaces`: the spaces at the breaks are dropped.

    A break is a pair: the start and the end of a row in the text.
    """
    # This is a hot path: the end of an answer is broken again with every delta. So text that fits is not looked at
    # further, and ASCII is broken without splitting it into graphemes.
    text = line[0].text if len(line) == 1 else "".join([segment.text for segment in line])
    if len(text) <= width and (text.isascii() or cell_len(text) <= width):
        return [list(line)]
    # A wide character needs two cells; with fewer, the loops below would never end.
    width = max(width, 2)
    if text.isascii():
        breaks = _break_words(text, width) if drops_spaces else _break_pieces(text, width)
    elif cell_len(text) <= width:
        return [list(line)]
    else:
        breaks = _break_graphemes(text, width, drops_spaces=drops_spaces)
    return _slice_line(line, breaks)


def _break_words(text: str, width: int) -> list[tuple[int, int]]:
    """Return the breaks of an ASCII text at spaces, which belong to no row."""
    breaks: list[tuple[int, int]] = []
    start, end = 0, len(text)
    while end - start > width:
        at = text.rfind(" ", start + 1, start + width + 1)
        if at == -1 or not text[start:at].strip(" "):
            breaks.append((start, start + width))
            start += width
            continue
        stop = at
        while text[stop - 1] == " ":
            stop -= 1
        breaks.append((start, stop))
        start = at + 1
        while start < end and text[start] == " ":
            start += 1
    if start < end or not breaks:
        breaks.append((start, end))
    return breaks


def _break_pieces(text: str, width: int) -> list[tuple[int, int]]:
    """Return the breaks of an ASCII text after spaces, which belong to the row before."""
    breaks: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > width:
        stop = text.rfind(" ", start, start + width) + 1
        if not text[start:stop].strip(" "):
            stop = start + width
        breaks.append((start, stop))
        start = stop
    return [*breaks, (start, len(text))]


def _break_graphemes(text: str, width: int, *, drops_spaces: bool) -> list[tuple[int, int]]:
    """Return the breaks of any text: at spaces, and next to wide characters."""
    breaks: list[tuple[int, int]] = []
    start = used = 0
    # The last index at which the row may end, and the cells of the row up to there.
    break_at = used_at_break = 0
    for begin, end, cells in split_graphemes(text):
        is_space = text[begin:end] == " "
        # A space that is dropped at the end of a row needs no room.
        if used + cells > width and not (is_space and drops_spaces):
            if break_at > start and text[start:break_at].strip(" "):
                breaks.append((start, break_at))
                start, used = break_at, used - used_at_break
            else:
                breaks.append((start, begin))
                start, used = begin, 0
            break_at = start
        used += cells
        if is_space or _is_wide(text[begin], cells):
            break_at, used_at_break = end, used
    if start < len(text) or not breaks:
        breaks.append((start, len(text)))
    return [_trim_break(text, first, last) for first, last in breaks] if drops_spaces else breaks


def _is_wide(char: str, cells: int) -> bool:
    """Return whether a row may end after a character: Chinese, Japanese and Korean have no spaces between words."""
    return cells == 2 and char not in _OPENING_BRACKETS


def _trim_break(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a break without the spaces at the end of its row."""
    stop = end
    while stop > start and text[stop - 1] == " ":
        stop -= 1
    return start, stop


def _slice_line(line: Sequence[Segment], breaks: Iterable[tuple[int, int]]) -> list[Row]:
    """Return the rows between breaks, with the styles of the line's segments."""
    rows: list[Row] = []
    # The index of a segment, and its start in the text. The breaks are in order, so that both only grow.
    at, offset = 0, 0
    for start, end in breaks:
        row: Row = []
        while at < len(line):
            text, style, _ = line[at]
            stop = offset + len(text)
            if stop > start:
                piece = text[max(start - offset, 0) : end - offset]
                if piece:
                    row.append(Segment(piece, style))
            if stop > end:
                break
            at, offset = at + 1, stop
        rows.append(row)
    return rows


def cut_line(line: Sequence[Segment], width: int) -> Row:
    """Return a line on one row of at most `width` cells; one that is cut ends with an ellipsis."""
    if measure_row(line) <= width:
        return list(line)
    row: Row = []
    room = max(width, 1) - 1
    for text, style, _ in line:
        beginning = truncate_text(text, room)
        room -= cell_len(beginning)
        if beginning:
            row.append(Segment(beginning, style))
        if beginning != text:
            row.append(Segment("…", style))
            break
    return row


def truncate_text(text: str, width: int) -> str:
    """Return as much of the beginning of a text as `width` cells hold."""
    if text.isascii():
        return text[:width]
    for start, _, cells in split_graphemes(text):
        width -= cells
        if width < 0:
            return text[:start]
    return text


def cut_text(text: str, width: int) -> str:
    """Return a text in at most `width` cells; one that is cut ends with an ellipsis."""
    if cell_len(text) <= width:
        return text
    return truncate_text(text, width - 1).rstrip() + "…" if width > 0 else ""


def cut_path(path: str, width: int) -> str:
    """Return a path in at most `width` cells; one that is cut begins with an ellipsis, since the end says most."""
    if cell_len(path) <= width:
        return path
    at = len(path)
    room = max(width, 1) - 1
    for start, _, cells in reversed(split_graphemes(path)):
        room -= cells
        if room < 0:
            break
        at = start
    return "…" + path[at:]


def wrap_text(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` cells, broken between words if possible.

    The blanks at the start of a paragraph are kept.
    """
    width = max(width, 1)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for number, word in enumerate(_WORD_WITH_BLANKS.findall(paragraph)):
            if line and cell_len(line) + cell_len(word) > width:
                lines.append(line)
                line = ""
            line += word if line or number == 0 else word.lstrip()
            if cell_len(line) > width:
                *complete_rows, line = chop_cells(line, width)
                lines += complete_rows
        lines.append(line)
    return lines


def pad_row(row: Row, width: int, style: Style) -> Row:
    """Return a row filled up to `width` cells with spaces in a style."""
    room = width - measure_row(row)
    return [*row, Segment(" " * room, style)] if room > 0 else row


def prefix_rows(rows: Iterable[Row], first: Segment, others: Segment | None = None) -> list[Row]:
    """Return rows with the segment `first` before the first row, and `others` (default: `first`) before the others."""
    result: list[Row] = []
    before = first
    for row in rows:
        result.append([before, *row])
        before = first if others is None else others
    return result


def justify_row(row: Row, right: Row, width: int) -> Row:
    """Return a row with one part at each end; if there is no room for both, only the left part."""
    gap = width - measure_row(row) - measure_row(right)
    return [*row, Segment(" " * gap), *right] if gap > 0 else row


def fill_background(row: Row, style: Style, width: int) -> Row:
    """Return a row with a background over the whole width."""
    gap = max(width - measure_row(row), 0)
    return [Segment(s.text, (s.style or Style.null()) + style) for s in [*row, Segment(" " * gap)]]
