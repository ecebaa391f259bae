"""Aligns the cells of rows, for the tables that commands print."""

from collections.abc import Sequence


def align_columns(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Return the rows as lines of aligned columns; `right`: the indexes of the columns to align on the right."""
    # All rows have the same number of cells.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)
