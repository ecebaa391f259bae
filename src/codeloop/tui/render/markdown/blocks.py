"""The blocks of Markdown, finished and still open, and the cells of a table's row."""

import re
from typing import Literal, NamedTuple

from msgspec import Struct

BlockKind = Literal["paragraph", "heading", "rule", "table", "rows", "code", "line"]


class Frame(Struct, frozen=True):
    """A container around a block: a quotation (no marker), or a list item.

    `marker`: such as `•`, `3.` or `[x]`. `is_first`: the block is the first in the item,
    so the marker is shown.
    """

    marker: str = ""
    is_first: bool = False


class Leaf(Struct, frozen=True):
    """A finished block that holds text (CommonMark's leaf block), or a piece of one.

    `kind`: `rows` continue the table before them, a `line` the code before it.

    `frames`: the containers around it, outermost first. `level`: of a heading;
    `info`: the language of a code block.
    `has_blank_before`: a blank row precedes it.
    """

    kind: BlockKind
    text: str
    frames: tuple[Frame, ...] = ()
    has_blank_before: bool = False
    level: int = 0
    info: str = ""


class Container(Struct):
    """A quotation (no marker), or a list item: the indentation of its content, and its marker.

    `is_empty`: no block in it was yielded yet.
    """

    indent: int = 0
    marker: str = ""
    is_empty: bool = True


class ItemNumber(NamedTuple):
    """The number of a list item, and the character at its marker's end, or the bullet: `.`, `)`,
    `-`, `*`, `+`.
    """

    kind: str
    number: int


class OpenBlock(Struct):
    """The open block: the lines of a paragraph or a table so far,
    or a code block with its fence ("": an indented one).

    `size`: characters of the lines; `indent`: of the fence;
    `blanks`: blank lines that may belong to an indented block.
    """

    kind: Literal["paragraph", "table", "fence", "indented"]
    lines: list[str]
    size: int = 0
    fence: str = ""
    indent: int = 0
    has_blank_before: bool = False
    is_partly_yielded: bool = False
    """Whether a part of it was yielded already."""
    blanks: int = 0


def split_cells(row: str) -> list[str]:
    """Return the cells of a table's row. A bar after a backslash, or within code,
    does not end a cell.
    """
    row = row.strip()
    row = row.removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    if "\\|" not in row and "`" not in row:
        return [cell.strip() for cell in row.split("|")]
    # A bar without a backslash before it, and with an even number of backticks behind
    # it: it is not within code.
    cells = re.split(r"(?<!\\)\|(?=(?:[^`]*`[^`]*`)*[^`]*$)", row)
    return [cell.replace("\\|", "|").strip() for cell in cells]
