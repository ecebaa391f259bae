"""Measures, wraps, cuts and pads text in terminal cells, without ever breaking a grapheme.

A line is a text of any width, in segments of one style each;
a row is a part of it that fits the screen.
"""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from codeloop.kit.text.patterns import compile_once
from codeloop.tui.render.canvas import Row
from codeloop.tui.render.graphemes import split_graphemes

RowSpan = tuple[int, int]
"""Where a row begins and ends in the text of its line."""
TAB_WIDTH = 4
"""Cells between two tab stops."""
# In Chinese and Japanese, a row must not end with one of these.
_OPENING_BRACKETS = "\uff08\u300c\u300e\u3010\u3008\u300a"
# A word, with the blanks before it.
_WORD_WITH_BLANKS = r"\s*\S+"


def measure_row(row: Iterable[Segment]) -> int:
    """Return how many cells a row takes."""
    return sum(cell_len(segment.text) for segment in row)


def expand_tabs(text: str) -> str:
    """Return a line with each tab replaced by spaces up to the next multiple
    of `TAB_WIDTH` cells.
    """
    if "\t" not in text:
        return text
    # A character of ASCII is one cell and one grapheme, so ASCII is never measured, which is slow;
    # as in the functions below.
    if text.isascii():
        return text.expandtabs(TAB_WIDTH)
    line_text, *pieces = text.split("\t")
    for piece in pieces:
        line_text += " " * (TAB_WIDTH - cell_len(line_text) % TAB_WIDTH) + piece
    return line_text


def wrap_line(line: Sequence[Segment], width: int) -> list[Row]:
    """Return a line in rows of at most `width` cells, broken at spaces if there are any;
    these are dropped.
    """
    return _break_line(line, width, drops_spaces=True)


def fold_line(line: Sequence[Segment], width: int) -> list[Row]:
    """Return a line in rows of at most `width` cells, broken after spaces if there are any;
    every space is kept.
    """
    return _break_line(line, width, drops_spaces=False)


def _break_line(line: Sequence[Segment], width: int, *, drops_spaces: bool) -> list[Row]:
    """Break a line into rows; `drops_spaces`: the spaces between two rows are dropped."""
    # This is a hot path: the end of an answer is broken again with every delta. So text that fits
    # is not looked at further, and ASCII is broken without splitting it into graphemes.
    text = line[0].text if len(line) == 1 else "".join([segment.text for segment in line])
    if len(text) <= width and (text.isascii() or cell_len(text) <= width):
        return [list(line)]
    # A wide character needs two cells; with fewer, the loops below would never end.
    width = max(width, 2)
    if text.isascii():
        spans = _split_at_spaces(text, width) if drops_spaces else _split_after_spaces(text, width)
    elif cell_len(text) <= width:
        return [list(line)]
    else:
        spans = _split_at_graphemes(text, width, drops_spaces=drops_spaces)
    return _slice_line(line, spans)


def _split_at_spaces(text: str, width: int) -> list[RowSpan]:
    """Return the rows of an ASCII text that is broken at spaces, which belong to no row."""
    spans: list[RowSpan] = []
    start, end = 0, len(text)
    while end - start > width:
        space = text.rfind(" ", start + 1, start + width + 1)
        # A word longer than a row is broken anywhere.
        if space == -1 or not text[start:space].strip(" "):
            spans.append((start, start + width))
            start += width
            continue
        spans.append(_trim_span(text, start, space))
        start = space + 1
        while start < end and text[start] == " ":
            start += 1
    if start < end or not spans:
        spans.append((start, end))
    return spans


def _split_after_spaces(text: str, width: int) -> list[RowSpan]:
    """Return the rows of an ASCII text that is broken after spaces,
    which belong to the row before.
    """
    spans: list[RowSpan] = []
    start = 0
    while len(text) - start > width:
        stop = text.rfind(" ", start, start + width) + 1
        if not text[start:stop].strip(" "):
            stop = start + width
        spans.append((start, stop))
        start = stop
    return [*spans, (start, len(text))]


def _split_at_graphemes(text: str, width: int, *, drops_spaces: bool) -> list[RowSpan]:
    """Return the rows of any text, which is broken at spaces and next to wide characters."""
    spans: list[RowSpan] = []
    start = used = 0
    # The last index at which the row may end, and the cells of the row up to there.
    break_at = used_at_break = 0
    for begin, end, cells in split_graphemes(text):
        is_space = text[begin:end] == " "
        # A space that is dropped at the end of a row needs no room.
        if used + cells > width and not (is_space and drops_spaces):
            if break_at > start and text[start:break_at].strip(" "):
                spans.append((start, break_at))
                start, used = break_at, used - used_at_break
            else:
                spans.append((start, begin))
                start, used = begin, 0
            break_at = start
        used += cells
        if is_space or _may_end_row(text[begin], cells):
            break_at, used_at_break = end, used
    if start < len(text) or not spans:
        spans.append((start, len(text)))
    return [_trim_span(text, start, end) for start, end in spans] if drops_spaces else spans


def _may_end_row(char: str, cells: int) -> bool:
    """Return whether a row may end after a character that is not a space.

    Chinese and Japanese have no spaces between words: their characters, two cells wide,
    may end a row.
    """
    return cells == 2 and char not in _OPENING_BRACKETS


def _trim_span(text: str, start: int, end: int) -> RowSpan:
    """Return the span of a row without the spaces at its end."""
    while end > start and text[end - 1] == " ":
        end -= 1
    return start, end


def _slice_line(line: Sequence[Segment], spans: Iterable[RowSpan]) -> list[Row]:
    """Return the rows of a line with these spans, in the styles of the line's segments."""
    rows: list[Row] = []
    # The spans are in order, so that both only grow.
    index, segment_start = 0, 0
    for start, end in spans:
        row: Row = []
        while index < len(line):
            text, style, _ = line[index]
            segment_end = segment_start + len(text)
            if segment_end > start:
                piece = text[max(start - segment_start, 0) : end - segment_start]
                if piece:
                    row.append(Segment(piece, style))
            if segment_end > end:
                break
            index, segment_start = index + 1, segment_end
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
    """Return a path in at most `width` cells; one that is cut begins with an ellipsis,
    since the end says most.
    """
    if cell_len(path) <= width:
        return path
    kept_start = len(path)
    room = max(width, 1) - 1
    for start, _, cells in reversed(split_graphemes(path)):
        room -= cells
        if room < 0:
            break
        kept_start = start
    return "…" + path[kept_start:]


def wrap_text(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` cells, broken between words if possible.

    The blanks at the start of a paragraph are kept.
    """
    width = max(width, 1)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for number, word in enumerate(compile_once(_WORD_WITH_BLANKS).findall(paragraph)):
            if line and cell_len(line) + cell_len(word) > width:
                lines.append(line)
                line = ""
            # The blanks before the first word of a later line are dropped.
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
    """Return rows with the segment `first` before the first row,
    and `others` (default: `first`) before the others.
    """
    result: list[Row] = []
    before = first
    for row in rows:
        result.append([before, *row])
        before = first if others is None else others
    return result


def justify_row(left: Row, right: Row, width: int) -> Row:
    """Return a row with one part at each end; if there is no room for both, only the left part."""
    gap = width - measure_row(left) - measure_row(right)
    return [*left, Segment(" " * gap), *right] if gap > 0 else left


def fill_background(row: Row, style: Style, width: int) -> Row:
    """Return a row with a background over the whole width."""
    filled_row = [*row, Segment(" " * max(width - measure_row(row), 0))]
    return [
        Segment(text, (segment_style or Style.null()) + style)
        for text, segment_style, _ in filled_row
    ]
