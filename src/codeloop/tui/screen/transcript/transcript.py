"""The conversation on the screen: rows of a document, of which only those in sight are drawn."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil
from typing import cast

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive, var
from textual.strip import Strip
from textual.widget import Widget

from codeloop.schema.wire import replace
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.items import Renderer
from codeloop.tui.screen.transcript.blocks import Blocks
from codeloop.tui.screen.transcript.pictured import is_drawn_on
from codeloop.tui.screen.transcript.selecting import SelectingView, marked
from codeloop.tui.screen.transcript.strips import RowStrips
from codeloop.tui.state.items import Item, ReasoningItem, SummaryItem, ToolItem

Greeting = Callable[[Canvas, int], list[Row]]
"""Returns what stands on so many rows of the screen as long as nothing was said."""
ItemsOf = Callable[[str], list[Item]]
MARGIN = 2
"""Columns on the left and the right of what is said."""
EIGHTHS = 8
"""Of a row: how finely the scroll bar is drawn."""
REVERSED = Style(color="default", bgcolor="default", bold=False, dim=False, reverse=True)
KEPT = 4
"""Screens of rows that are kept as they were drawn."""


class Transcript(SelectingView, can_focus=False):
    """Shows the messages of a session; stays at the end while it grows, unless the person has scrolled up."""

    DEFAULT_CSS = """
    Transcript { height: 1fr; margin-bottom: 1; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """

    follows = var(default=True, init=False)
    """Whether the end stays in sight."""

    class NearTop(Message):
        """The oldest message is nearly in sight: older ones are wanted."""

    class Turned(Message):
        """The person has left the end of the conversation, or is there again."""

    class Toggled(Message):
        """An item should be opened or closed."""

        def __init__(self, key: str, message_id: str) -> None:
            super().__init__()
            self.key = key
            self.message_id = message_id

    class Pointed(Message):
        """Something was clicked: `kind` is `open` (a session's id), `link` (an address) or `image` (a part's id)."""

        def __init__(self, kind: str, value: str) -> None:
            super().__init__()
            self.kind = kind
            self.value = value

    def __init__(self, canvas: Canvas, greeting: Greeting) -> None:
        super().__init__()
        self.canvas = canvas
        self._greeting = greeting
        self._renderer = Renderer(canvas)
        self.blocks = Blocks(self._renderer.rows)
        self._bar = (0, 0, 0)
        """Where the scroll bar's thumb begins, and how long it is, in eighths of a row; first the bar's own rows."""
        self._strips = RowStrips(self, MARGIN)

    def restyle(self, canvas: Canvas) -> None:
        """Draw everything for another canvas; its width is taken from the widget."""
        width = max(self.size.width - 2 * MARGIN, 10) if self.size.width else canvas.width
        self.canvas = canvas = replace(canvas, width=width)
        self._renderer = Renderer(canvas)
        self.chosen = None
        self.pictures.clear()
        self._strips.restyle(canvas.styles.of("text", on="background"))
        share = self.scroll_y / self.max_scroll_y if self.max_scroll_y else 1.0
        self.blocks.redraw(self._renderer.rows)
        self._resized()
        self.refresh()
        if not self.follows:
            self.scroll_to(y=share * self.max_scroll_y, animate=False)

    def sync(self, order: Sequence[str], changed: Iterable[str], items_of: ItemsOf) -> bool:
        """Show the messages as they are now; what is in sight stays where it is. Return whether it has scrolled."""
        top, before = round(self.scroll_y), self.blocks.height
        anchor = self.blocks.block_at(top)
        at = self.blocks.top_of(anchor.item.key) if anchor is not None and not self.follows else None
        first = self.blocks.sync(order, changed, items_of)
        self._resized()
        if at is not None and anchor is not None and before:
            now = self.blocks.top_of(anchor.item.key)
            if now is not None and now != at:
                self.move_selection(now - at)
                self.scroll_to(y=top + now - at, animate=False)
        row = max(first - round(self.scroll_y), 0)
        if row < self.size.height:  # a scroll draws everything by itself
            self.refresh(Region(0, row, self.size.width, self.size.height - row))
        return round(self.scroll_y) != top

    def tick(self) -> None:
        """Draw again what changes with time: calls that run."""
        if self.blocks.refresh(self._renderer.is_timed):
            self._resized()
            self.refresh()

    def prompt_near(self, step: int, keys: Sequence[str]) -> None:
        """Scroll to the next (1) or the previous (-1) of some items, seen from the top of the screen."""
        tops = [top for top in map(self.blocks.top_of, keys) if top is not None]
        now = round(self.scroll_y)
        found = [top for top in tops if (top > now if step > 0 else top < now)]
        if found:
            self._go(min(found) if step > 0 else max(found))
        elif step > 0:
            self.to_end()

    def show_item(self, key: str) -> None:
        """Scroll to an item."""
        if (top := self.blocks.top_of(key)) is not None:
            self._go(top)

    def to_end(self) -> None:
        """Scroll to the end, and stay there."""
        self.follows = True
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def by(self, rows: float) -> None:
        """Scroll by some rows; up is negative."""
        self._go(self.scroll_y + rows)

    def render_line(self, y: int) -> Strip:
        """Return one row of the screen, as the library looks for what the mouse has pointed at."""
        return self._strips.strip(self.blocks.row(y + round(self.scroll_y)), self.scrollable_content_region.width)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the screen: those from before are the same objects, and ready to be written."""
        top = round(self.scroll_y)
        self._strips.keep(KEPT * max(crop.height, 1))
        width = self.scrollable_content_region.width  # asked once: the library works it out anew each time
        strips: list[Strip] = []
        is_whole = crop.x == 0 and crop.right >= width
        for number in range(top + crop.y, top + crop.bottom):
            row = self.blocks.row(number)
            strip = self._strips.strip(self.look(number - top, row, self.canvas.pictures), width)
            if self.chosen is not None and not is_drawn_on(row) and (span := self.span(number)) is not None:
                strip = marked(strip, span, self._mark)
            if self.blocks.highlights.is_on:
                place = self.blocks.place_of(number)
                strip = self.blocks.highlights.mark(strip, place, MARGIN, self.canvas.styles)
            strips.append(strip if is_whole else strip.crop(crop.x, crop.right))
        return strips

    def text_of(self, row: int) -> str:
        """Return the text of a row."""
        return " " * MARGIN + Strip(self.blocks.row(row)).text

    @property
    def _mark(self) -> Style:
        """How what is selected looks; in the terminal's own colours, of which any may be any other's: reversed."""
        if not self.canvas.styles.theme.background.startswith("#"):
            return REVERSED
        return self.canvas.styles.of("background", on="primary")

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Stay at the end once the person has scrolled there; ask for older messages near the top."""
        if round(old_value) != round(new_value):
            self.refresh(self.size.region)
        self._move_bar(new_value)
        if new_value < old_value:
            self.follows = new_value >= self.max_scroll_y
        elif new_value >= self.max_scroll_y:
            self.follows = True
        height = self.size.height
        self.blocks.forget_rows(round(new_value) - height, round(new_value) + 2 * height)
        if new_value < height < self.blocks.height and not self.follows:
            self.post_message(self.NearTop())

    def watch_follows(self) -> None:
        """Say that the person has left the end, or is there again."""
        self.post_message(self.Turned())

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for the new width."""
        if self.size.width and self.canvas.width != max(self.size.width - 2 * MARGIN, 10):
            self.restyle(self.canvas)
        self._resized()

    def on_click(self, event: events.Click) -> None:
        """Open what was clicked."""
        if self.has_dragged or event.chain > 1:
            return
        meta = event.style.meta
        kind = next((kind for kind in ("open", "link", "image") if kind in meta), "")
        if kind:
            self.post_message(self.Pointed(kind, str(meta[kind])))
            return
        self.toggle([event.y], is_marked="toggle" in meta)

    def toggle(self, rows: Iterable[int], *, is_marked: bool = False) -> bool:
        """Open or close what is on the first of these rows of the screen that can be; return whether something is.

        `is_marked`: they say so.
        """
        blocks = (self.blocks.block_at(y + round(self.scroll_y)) for y in rows)
        for block in blocks:
            if block is not None and (is_marked or isinstance(block.item, ToolItem | ReasoningItem | SummaryItem)):
                return self.post_message(self.Toggled(block.item.key, block.message_id))
        return False

    def _go(self, row: float) -> None:
        self.follows = row >= self.max_scroll_y
        self.scroll_to(y=max(row, 0), animate=False)

    def _move_bar(self, position: float) -> None:
        """Move the scroll bar, but only if it would look different: drawing it costs as much as the text."""
        size, total, window = self.size.height, self.blocks.height, self.container_size.height
        if not self.show_vertical_scrollbar or not size:
            return
        thumb = max(1.0, window * size / total) if total > window else 0.0
        start = int((size - thumb) * position / (total - window) * EIGHTHS) if thumb else 0
        look = (size, start, ceil(thumb * EIGHTHS))
        if look != self._bar:
            self._bar = look
            self.vertical_scrollbar.window_virtual_size = total
            self.vertical_scrollbar.window_size = window
            self.vertical_scrollbar.position = position

    def _resized(self) -> None:
        if not self.blocks.height:
            self.blocks.blank = self._greeting(self.canvas, self.size.height)
        size = Size(self.size.width, self.blocks.height)
        if size != self.virtual_size:
            self.set_reactive(
                cast("Reactive[Size]", Widget.virtual_size), size
            )  # nothing around it moves: no new layout
            self._move_bar(self.scroll_y)
        if self.follows and not self.is_selecting:
            self.scroll_to(y=self.max_scroll_y, animate=False)
