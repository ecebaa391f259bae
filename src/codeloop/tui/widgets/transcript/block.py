"""A drawn item of the conversation."""

from msgspec import Struct

from codeloop.tui.render.canvas import Row
from codeloop.tui.state.items import Item


class Block(Struct, eq=False):
    """An item and its rows (None: dropped), below `gap` empty rows; `height` without the gap.

    `same`: how many rows at its top did not change in the last drawing.
    """

    message_id: str
    item: Item
    rows: list[Row] | None
    height: int
    gap: int = 0
    same: int = 0
