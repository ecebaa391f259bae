"""A drawn item of the conversation."""

from msgspec import Struct

from codeloop.tui.render.canvas import Row
from codeloop.tui.state.items import Item


class Block(Struct, eq=False):
    """An item and its rows, below `gap` empty rows. `rows` is None after they were dropped to save memory.

    `height`: rows without the gap. `unchanged_rows`: how many rows at its top the last drawing left as they were.
    """

    message_id: str
    item: Item
    rows: list[Row] | None
    height: int
    gap: int = 0
    unchanged_rows: int = 0
