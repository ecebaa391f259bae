"""Aligns the cells of rows, for the tables that commands print."""

from collections.abc import Collection, Sequence

from codeloop.client.formatting import align_table


def align_columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """Return the rows as lines of aligned columns; `right`: the indexes of the
    columns to align on the right.
    """
    return "\n".join(align_table(rows, right))
