"""Draws a table of Markdown for a terminal: its columns fit the terminal's width,
and long cells wrap.
"""

import re
from collections.abc import Sequence

from codeloop.cli.output.style import paint
from codeloop.client.formatting import measure_width

# The control sequence that sets colours and styles (SGR).
SGR_PATTERN = r"\x1b\[[0-9;]*m"
SGR_RESET = "\x1b[0m"
# Terminal columns of ` │ ` between two cells.
SEPARATOR_WIDTH = 3
# With fewer terminal columns for each cell, words would be cut to pieces: rows are
# shown as `name: value` lines.
MIN_CELL_WIDTH = 6


def split_cells(row: str) -> list[str]:
    """Return the cells of a row; a bar after a backslash, or within code, does not end one."""
    row = row.strip().removeprefix("|")
    cells, is_code, index = [""], False, 0
    while index < len(row):
        char = row[index]
        if char == "\\" and row[index + 1 : index + 2] == "|":
            index += 1
            cells[-1] += "|"
        # A backtick that is never closed begins no code.
        elif char == "|" and not (is_code and "`" in row[index:]):
            cells.append("")
        else:
            if char == "`":
                is_code = not is_code
            cells[-1] += char
        index += 1
    # The bar at the end of the row.
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [cell.strip() for cell in cells]


def draw_table(rows: Sequence[Sequence[str]], alignments: Sequence[str], columns: int) -> str:
    """Return a table as lines for a terminal of `columns` columns.

    `rows`: painted cells, the header first; a newline in a cell begins a line. `alignments`:
    `left`, `right` or `middle` for each column of the table.
    """
    count = len(alignments)
    # Models write rows with too few cells, or too many.
    complete_rows = [[*row, *[""] * count][:count] for row in rows]
    cells = [[cell.split("\n") for cell in row] for row in complete_rows]
    natural_widths = [
        max(_measure_width(line) for row in cells for line in row[index]) for index in range(count)
    ]
    # Writing into the last column would make some terminals wrap.
    widths = _fit_widths(natural_widths, columns - 1)
    if not widths:
        return "".join(_stack_row(rows[0], row) for row in rows[1:])
    lines: list[str] = []
    for number, row in enumerate(cells):
        lines += _draw_row(row, widths, alignments, is_header=number == 0)
        if number == 0:
            lines.append(paint("─┼─".join("─" * width for width in widths), "dim", colour=True))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _fit_widths(natural_widths: Sequence[int], room: int) -> list[int]:
    """Return the widths of the columns; an empty list if there is no room for them.

    Narrow columns keep their natural width, and the others share the rest.
    """
    room -= SEPARATOR_WIDTH * (len(natural_widths) - 1)
    widths = [max(width, 1) for width in natural_widths]
    if sum(widths) <= room:
        return widths
    if room < MIN_CELL_WIDTH * len(natural_widths):
        return []
    # The narrowest first: what it leaves of its share goes to the others.
    columns = sorted(range(len(natural_widths)), key=lambda index: widths[index])
    for done_count, index in enumerate(columns):
        widths[index] = min(widths[index], room // (len(columns) - done_count))
        room -= widths[index]
    return widths


def _draw_row(
    row: Sequence[Sequence[str]],
    widths: Sequence[int],
    alignments: Sequence[str],
    *,
    is_header: bool,
) -> list[str]:
    """Return a row as lines; `row`: the lines of each cell, which are wrapped to the widths."""
    cell_lines = [
        [part for line in cell for part in wrap_painted(line, width)]
        for cell, width in zip(row, widths, strict=True)
    ]
    separator = paint(" │ ", "dim", colour=True)
    lines: list[str] = []
    for number in range(max(map(len, cell_lines))):
        cells: list[str] = []
        for cell, width, alignment in zip(cell_lines, widths, alignments, strict=True):
            text = cell[number] if number < len(cell) else ""
            room = max(width - _measure_width(text), 0)
            before = {"left": 0, "right": room, "middle": room // 2}[alignment]
            # Styles can't be nested, so those within a heading are removed.
            text = paint(re.sub(SGR_PATTERN, "", text), "bold", colour=True) if is_header else text
            cells.append(" " * before + text + " " * (room - before))
        lines.append(separator.join(cells))
    return lines


def _stack_row(names: Sequence[str], row: Sequence[str]) -> str:
    """Return a row as `name: value` lines, where there is no room for columns."""
    lines = (
        f"{paint(re.sub(SGR_PATTERN, '', name), 'bold', colour=True)}: {cell}\n"
        for name, cell in zip(names, row, strict=False)
    )
    return "".join(lines) + "\n"


class _WrappedLines:
    """Lines of painted text, the last of which grows. Each line ends unpainted,
    and the next one begins painted again.

    `used`: the columns that the last line takes.
    """

    def __init__(self) -> None:
        self.lines = [""]
        self.used = 0
        self._style = ""

    def add_text(self, text: str, columns: int) -> None:
        """Add text to the last line, which takes so many columns."""
        self.lines[-1] += text
        self.used += columns

    def add_style(self, sequence: str) -> None:
        """Add a control sequence to the last line, which takes no column."""
        self.lines[-1] += sequence
        self._style = "" if sequence == SGR_RESET else sequence

    def break_line(self) -> None:
        """End the last line, and begin another one in the same style."""
        self.lines[-1] += SGR_RESET if self._style else ""
        self.lines.append(self._style)
        self.used = 0


def wrap_painted(text: str, width: int) -> list[str]:
    """Return painted text as lines of at most `width` columns, broken between words;
    each line ends unpainted.
    """
    wrapped, gap = _WrappedLines(), ""
    for token in re.findall(rf"{SGR_PATTERN}|\s+|[^\s\x1b]+|\x1b", text):
        if re.fullmatch(SGR_PATTERN, token):
            wrapped.add_text(gap, len(gap))
            wrapped.add_style(token)
            gap = ""
            continue
        if token.isspace():
            # Written with the next word, and dropped at the start and the end of a line.
            gap = token if wrapped.used else ""
            continue
        token_width = measure_width(token)
        if wrapped.used and wrapped.used + len(gap) + token_width > width:
            wrapped.break_line()
            gap = ""
        wrapped.add_text(gap, len(gap))
        gap = ""
        # A word that is wider than a line is broken between characters.
        for piece in token if token_width > width else [token]:
            piece_width = measure_width(piece)
            if wrapped.used and wrapped.used + piece_width > width:
                wrapped.break_line()
            wrapped.add_text(piece, piece_width)
    return wrapped.lines


def _measure_width(text: str) -> int:
    return measure_width(re.sub(SGR_PATTERN, "", text))
