"""An item of the conversation, drawn."""

from msgspec import Struct

from codeloop.tui.render.canvas import Row
from codeloop.tui.state.items import Item


class Block(Struct, eq=False):
    """An item and its rows (None: not kept), below `gap` empty rows; `height` without the gap.

    `same`: how many rows at its top are as they were before it was drawn last.
    """

    message_id: str
    item: Item
    rows: list[Row] | None
    height: int
    gap: int = 0
    same: int = 0
