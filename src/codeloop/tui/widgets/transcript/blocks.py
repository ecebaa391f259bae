"""A conversation as one long page of rows: each item is drawn once, and again when it changes.

The transcript shows a part of the page; the search in the conversation and the
selection count rows of the page.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from codeloop.tui.render.canvas import Row
from codeloop.tui.state.conversation_items import FoldItem, Item, ToolItem

DrawItem = Callable[[Item], list[Row]]
"""Returns the rows of an item, at the width and in the theme of now."""
MAX_DRAWN_BLOCKS = 400
"""How many blocks keep their rows; of blocks farther from the screen only the height is kept."""

# One object: strips are cached by the identity of their row.
EMPTY_ROW: Row = []


# Compared by identity: two messages may hold equal items.
class Block(Struct, eq=False):
    """An item and its rows, below `gap` empty rows.
    `rows` is None after they were dropped to save memory.

    `height`: rows without the gap. `unchanged_rows`: how many rows at its top the last
    drawing left as they were.
    """

    message_id: str
    item: Item
    rows: list[Row] | None
    height: int
    gap: int = 0
    unchanged_rows: int = 0


class DrawnBlock(NamedTuple):
    """A block with its rows, and the number of its first row on the page."""

    block: Block
    rows: list[Row]
    top: int


class BlockRow(NamedTuple):
    """A row of the page: the block that it belongs to, and its index among the rows of that."""

    block: Block
    row_index: int


class Blocks:
    """The blocks of all messages in their order. Rows are numbered from 0 at the top."""

    def __init__(self, draw: DrawItem) -> None:
        self._draw_item = draw
        self._blocks_by_message: dict[str, list[Block]] = {}
        """The blocks of each message."""
        self._blocks: list[Block] = []
        """All blocks, top to bottom."""
        self._starts: list[int] = []
        """The row at which the gap above each block begins."""
        self.height = 0
        """Rows of the page."""
        self.empty_page: list[Row] = []
        """The rows that are shown while there are no messages."""

    def redraw(self, draw: DrawItem) -> None:
        """Redraw every item, for another width or theme."""
        self._draw_item = draw
        for block in self._blocks:
            self._draw_block(block)
        self._position_blocks(0)

    def sync(
        self,
        order: Sequence[str],
        changed_ids: Iterable[str],
        list_items: Callable[[str], list[Item]],
    ) -> int:
        """Update from the messages: `order` lists the ids of all,
        `changed_ids` those whose items may differ.

        Return the first row that may differ.
        """
        # While a model writes, the last block changes with each frame: then only its end is
        # positioned and drawn again.
        first = len(self._blocks)
        is_same_order = list(self._blocks_by_message) == list(order)
        for message_id in changed_ids:
            before = self._blocks_by_message.get(message_id, [])
            after, unchanged_count = self._update_message(
                message_id, before, list_items(message_id)
            )
            self._blocks_by_message[message_id] = after
            is_same_order = is_same_order and len(before) == len(after)
            if before and is_same_order:
                first = min(first, self._find_index(before[0]) + unchanged_count)
        groups = {message_id: self._blocks_by_message.get(message_id, []) for message_id in order}
        self._blocks_by_message = groups
        self._blocks = [block for group in groups.values() for block in group]
        return self._position_blocks(first if is_same_order else 0)

    def refresh(self, is_stale: Callable[[Item], bool]) -> bool:
        """Redraw time-dependent items; return whether there were any."""
        first = len(self._blocks)
        # Of a long conversation only the end: what still runs is there.
        for index in range(max(len(self._blocks) - MAX_DRAWN_BLOCKS, 0), len(self._blocks)):
            if is_stale(self._blocks[index].item):
                self._draw_block(self._blocks[index])
                first = min(first, index)
        has_stale = first < len(self._blocks)
        if has_stale:
            self._position_blocks(first)
        return has_stale

    def find_block(self, row: int) -> Block | None:
        """Return the block that a row belongs to; the gap above a block belongs to it, too."""
        index = bisect_right(self._starts, row) - 1
        return self._blocks[index] if 0 <= index < len(self._blocks) and row < self.height else None

    def locate(self, row: int) -> BlockRow | None:
        """Return the block that a row belongs to, and the row's index in it;
        None for a row of a gap.
        """
        block_index = bisect_right(self._starts, row) - 1
        if not 0 <= block_index < len(self._blocks):
            return None
        block = self._blocks[block_index]
        row_index = row - self._starts[block_index] - block.gap
        return BlockRow(block, row_index) if 0 <= row_index < block.height else None

    def find_drawn_block(self, key: str) -> DrawnBlock | None:
        """Return an item's block by its key, drawn if its rows were dropped;
        None: there is no such item.
        """
        for block, start in zip(self._blocks, self._starts, strict=True):
            if block.item.key == key:
                block.rows = block.rows if block.rows is not None else self._draw_item(block.item)
                return DrawnBlock(block, block.rows, start + block.gap)
        return None

    def get_row(self, row: int) -> Row:
        """Return one row of the page, an empty one outside of it;
        without messages, a row of `empty_page`.
        """
        if not self.height:
            return self.empty_page[row] if row < len(self.empty_page) else EMPTY_ROW
        block_index = bisect_right(self._starts, row) - 1
        if not 0 <= block_index < len(self._blocks):
            return EMPTY_ROW
        block = self._blocks[block_index]
        row_index = row - self._starts[block_index] - block.gap
        if block.rows is None:
            block.rows = self._draw_item(block.item)
        return block.rows[row_index] if 0 <= row_index < len(block.rows) else EMPTY_ROW

    def find_top_row(self, key: str) -> int | None:
        """Return the number of an item's first row, by its key; None: there is no such item."""
        for block, start in zip(self._blocks, self._starts, strict=True):
            if block.item.key == key:
                return start + block.gap
        return None

    def drop_far_rows(self, top: int, bottom: int) -> None:
        """Drop the rows of blocks that are far from those from `top` to `bottom`;
        they are drawn again when needed.
        """
        if len(self._blocks) <= MAX_DRAWN_BLOCKS:
            return
        first = bisect_right(self._starts, top) - MAX_DRAWN_BLOCKS // 2
        last = bisect_right(self._starts, bottom) + MAX_DRAWN_BLOCKS // 2
        for index, block in enumerate(self._blocks):
            if not first <= index <= last:
                block.rows = None

    def _update_message(
        self, message_id: str, before: list[Block], items: list[Item]
    ) -> tuple[list[Block], int]:
        """Return a message's current blocks, and how many at its top are unchanged."""
        blocks_by_key = {block.item.key: block for block in before}
        blocks: list[Block] = []
        unchanged_count = 0
        for item in items:
            block = blocks_by_key.get(item.key)
            if block is None or block.item != item:
                block = block or Block(message_id, item, None, 0)
                block.item = item
                self._draw_block(block)
            # Counted only as long as all before are unchanged.
            elif unchanged_count == len(blocks):
                unchanged_count += 1
            blocks.append(block)
        return blocks, unchanged_count

    def _draw_block(self, block: Block) -> None:
        # A renderer returns the same objects for the rows that have not changed,
        # so comparing identities is enough.
        old_rows = block.rows or ()
        block.rows = self._draw_item(block.item)
        block.height = len(block.rows)
        block.unchanged_rows = 0
        for old_row, new_row in zip(old_rows, block.rows, strict=False):
            if old_row is not new_row:
                break
            block.unchanged_rows += 1

    def _find_index(self, block: Block) -> int:
        # From the end, where blocks change.
        indices = range(len(self._blocks) - 1, -1, -1)
        return next((index for index in indices if self._blocks[index] is block), 0)

    def _position_blocks(self, first: int) -> int:
        """Position every block from `first` on; return the first row that may differ."""
        # Only the last block has changed, and may keep the rows at its top.
        is_grown = first == len(self._blocks) - 1 and len(self._starts) == len(self._blocks)
        del self._starts[first:]
        row, before = 0, None
        if first:
            before = self._blocks[first - 1]
            row = self._starts[first - 1] + before.gap + before.height
        for block in self._blocks[first:]:
            block.gap = 0 if before is None or _is_dense(before, block) else 1
            self._starts.append(row)
            if block.height:
                row += block.gap + block.height
                before = block
            else:
                # An item without rows, such as hidden thinking, leaves no gap behind.
                block.gap = 0
        self.height = row
        if is_grown:
            return (
                self._starts[first] + self._blocks[first].gap + self._blocks[first].unchanged_rows
            )
        return self._starts[first] if first < len(self._starts) else row


def _is_dense(before: Block, block: Block) -> bool:
    """Return whether two blocks have no empty row between them: both are tool calls of one row."""
    return all(
        isinstance(each.item, ToolItem | FoldItem) and each.height == 1 for each in (before, block)
    )
