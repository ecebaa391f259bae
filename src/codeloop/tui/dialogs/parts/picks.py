"""The data of a picker: its rows, their source, and its actions."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from codeloop.tui.render.canvas import Row

T = TypeVar("T")


class Pick(Struct, Generic[T], frozen=True):
    """One row. All texts are untrusted: the picker escapes them.

    `detail` follows the title, `hint` is at the right end, `mark` before it (one cell); `also`: searched, not shown.
    `problem`: why it can't be chosen, "" if it can; the row shows its text up to the first colon.
    `note`: said below the list while the cursor is on the row. `look`: the colour of the detail.
    """

    value: T
    title: str
    detail: str = ""
    hint: str = ""
    group: str = ""
    mark: str = ""
    also: str = ""
    problem: str = ""
    note: str = ""
    look: str = "text_muted"


class PickAction(Struct, Generic[T], frozen=True):
    """An action on a row besides choosing it; returns whether the rows must be reloaded.

    `run` gets None when there is no row.
    """

    key: str
    title: str
    run: Callable[[T | None], Awaitable[bool]]


class PickSource(Struct, Generic[T], frozen=True):
    """The source of the rows. `load` may raise CodeloopError, whose text is shown.

    `search`: finds more rows for what is typed. `preview`: draws what a value is about, in rows of a width (cells).
    `on_move`: called with the value under the cursor. `start`: the value that the cursor is on at first.
    """

    title: str
    load: Callable[[], Awaitable[Sequence[Pick[T]]]]
    actions: tuple[PickAction[T], ...] = ()
    search: Callable[[str], Awaitable[Sequence[Pick[T]]]] | None = None
    preview: Callable[[T, int], Awaitable[Sequence[Row]]] | None = None
    on_move: Callable[[T | None], None] | None = None
    start: T | None = None
    empty: str = "There is nothing here yet."
    choose: str = "choose"
    """The label of Enter."""
    finds_groups: bool = True
    """Whether the filter also matches group names."""
