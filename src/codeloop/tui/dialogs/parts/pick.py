"""The data types of a picker: a row (`Pick`), an action on rows, and the source that loads rows."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from codeloop.tui.render.canvas import Row

T = TypeVar("T")


class Pick(Struct, Generic[T], frozen=True):
    """One row of a picker; `value`: the result of choosing it.
    The texts may be untrusted: the picker escapes them.

    A row shows `mark` (one cell), `title`, `detail`, and at its right end `hint`.
    `group`: the heading above it.
    `search_text`: the filter searches it, but it is not shown. `detail_colour`: of the theme.
    `problem`: why the row can't be chosen, "" if it can;
    shown up to its first colon, instead of the hint.
    `note`: a text shown below the list while the cursor is on the row. `keeps_blanks`: the title is
    a line of a file, whose indentation is shown.
    """

    value: T
    title: str
    detail: str = ""
    hint: str = ""
    group: str = ""
    mark: str = ""
    search_text: str = ""
    problem: str = ""
    note: str = ""
    detail_colour: str = "text_muted"
    keeps_blanks: bool = False


class PickAction(Struct, Generic[T], frozen=True):
    """An action on a row, besides choosing it. `key` runs it; `title` is its label.

    `run` is called with the value of the row, or None when there is no row,
    and returns whether to reload the rows.
    """

    key: str
    title: str
    run: Callable[[T | None], Awaitable[bool]]


class PickSource(Struct, Generic[T], frozen=True):
    """The source of a picker's rows, and its texts.
    `load` may raise CodeloopError, whose text is shown.

    `search`: finds more rows for the typed text. `preview`: draws the details of a
    value for a width in cells.
    `on_move`: called with the value under the cursor.
    `start`: the value that the cursor is on at first.
    `empty_message`: shown when there are no rows.
    """

    title: str
    load: Callable[[], Awaitable[Sequence[Pick[T]]]]
    actions: tuple[PickAction[T], ...] = ()
    search: Callable[[str], Awaitable[Sequence[Pick[T]]]] | None = None
    preview: Callable[[T, int], Awaitable[Sequence[Row]]] | None = None
    on_move: Callable[[T | None], None] | None = None
    start: T | None = None
    empty_message: str = "There is nothing here yet."
    choose_label: str = "choose"
    """The label of Enter."""
    finds_groups: bool = True
    """Whether the filter also matches group names."""
