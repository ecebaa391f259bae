"""A table of Markdown for a terminal: columns that fit its width, cells that wrap."""

import re
from collections.abc import Sequence

from codeloop.cli.output.style import paint
from codeloop.client.formatting import measure_width

SGR_PATTERN = r"\x1b\[[0-9;]*m"
SGR_RESET = "\x1b[0m"
SEPARATOR_WIDTH = 3
"""Columns of the line between two cells."""
MIN_CELL_WIDTH = 6
"""Columns of a cell under which rows are shown as `name: value` lines."""


def split_cells(row: str) -> list[str]:
    """Return the cells of a row; a bar after a backslash, or within code, does not end one."""
    row = row.strip().removeprefix("|")
    cells, is_code, at = [""], False, 0
    while at < len(row):
        if row[at] == "\\" and row[at + 1 : at + 2] == "|":
            at += 1
            cells[-1] += "|"
        elif row[at] == "|" and not (is_code and "`" in row[at:]):
            cells.append("")
        else:
            is_code = is_code != (row[at] == "`")
            cells[-1] += row[at]
        at += 1
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [cell.strip() for cell in cells]


def draw_table(rows: Sequence[Sequence[str]], alignments: Sequence[str], columns: int) -> str:
    """Return a table as lines for a terminal of so many columns.

    `rows`: painted cells, the header first, whose lines end with a newline. `alignments`: `left`, `right` or `middle`
    for each column.
    """
    count = len(alignments)
    cells = [[cell.split("\n") for cell in [*row, *[""] * count][:count]] for row in rows]
    widths = _fit_widths(
        [max(_measure_width(line) for row in cells for line in row[at]) for at in range(count)], columns - 1
    )
    if not widths:
        return "".join(_stack_row(rows[0], row) for row in rows[1:])
    lines: list[str] = []
    for number, row in enumerate(cells):
        lines += _draw_row(row, widths, alignments, is_header=number == 0)
        if number == 0:
            lines.append(paint("─┼─".join("─" * width for width in widths), "dim", colour=True))
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _fit_widths(natural_widths: Sequence[int], room: int) -> list[int]:
    """Return the columns' widths: narrow ones as they are, the others share the rest; none without room for columns."""
    room -= SEPARATOR_WIDTH * (len(natural_widths) - 1)
    widths = [max(width, 1) for width in natural_widths]
    if sum(widths) <= room:
        return widths
    if room < MIN_CELL_WIDTH * len(natural_widths):
        return []
    columns = sorted(range(len(natural_widths)), key=lambda at: widths[at])
    for order, at in enumerate(columns):
        widths[at] = min(widths[at], room // (len(columns) - order))
        room -= widths[at]
    return widths


def _draw_row(
    row: Sequence[Sequence[str]], widths: Sequence[int], alignments: Sequence[str], *, is_header: bool
) -> list[str]:
    cell_lines = [
        [part for line in cell for part in wrap_painted(line, width)] for cell, width in zip(row, widths, strict=True)
    ]
    between = paint(" │ ", "dim", colour=True)
    lines: list[str] = []
    for number in range(max(map(len, cell_lines))):
        cells: list[str] = []
        for cell, width, alignment in zip(cell_lines, widths, alignments, strict=True):
            text = cell[number] if number < len(cell) else ""
            room = max(width - _measure_width(text), 0)
            before = {"left": 0, "right": room, "middle": room // 2}[alignment]
            text = paint(re.sub(SGR_PATTERN, "", text), "bold", colour=True) if is_header else text
            cells.append(" " * before + text + " " * (room - before))
        lines.append(between.join(cells))
    return lines


def _stack_row(names: Sequence[str], row: Sequence[str]) -> str:
    """Return a row as `name: value` lines, where there is no room for columns."""
    lines = (
        f"{paint(re.sub(SGR_PATTERN, '', name), 'bold', colour=True)}: {cell}\n"
        for name, cell in zip(names, row, strict=False)
    )
    return "".join(lines) + "\n"


def wrap_painted(text: str, width: int) -> list[str]:
    """Return painted text as lines of at most `width` columns, broken between words; each line ends unpainted."""
    lines, used, look, gap = [""], 0, "", ""
    for token in re.findall(rf"{SGR_PATTERN}|\s+|[^\s\x1b]+|\x1b", text):
        if re.fullmatch(SGR_PATTERN, token):
            lines[-1] += gap + token
            used, gap = used + len(gap), ""
            look = "" if token == SGR_RESET else token
            continue
        if token.isspace():
            gap = token if used else ""
            continue
        if used and used + len(gap) + measure_width(token) > width:
            lines[-1] += SGR_RESET if look else ""
            lines.append(look)
            used, gap = 0, ""
        lines[-1] += gap
        used, gap = used + len(gap), ""
        for char in token if measure_width(token) > width else [token]:
            if used and used + measure_width(char) > width:
                lines[-1] += SGR_RESET if look else ""
                lines.append(look)
                used = 0
            lines[-1] += char
            used += measure_width(char)
    return lines


def _measure_width(text: str) -> int:
    return measure_width(re.sub(SGR_PATTERN, "", text))
