"""The conversation widget: shows a part of the page of `blocks.py`, scrolls it,
and handles clicks and selections.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive, var
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widget import Widget

from codeloop.schema.wire import replace
from codeloop.tui.render.canvas import Canvas, Row
from codeloop.tui.render.picture_rows import PictureRow, PictureStore
from codeloop.tui.render.renderer import Renderer
from codeloop.tui.state.conversation_items import (
    FoldItem,
    Item,
    ReasoningItem,
    SummaryItem,
    ToolItem,
)
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.transcript.blocks import Blocks
from codeloop.tui.widgets.transcript.highlights import Highlights, highlight_cells
from codeloop.tui.widgets.transcript.scroll_bar import (
    ScrollBarGeometry,
    create_scroll_bar,
    update_scroll_bar,
)
from codeloop.tui.widgets.transcript.selection import Selection


# The namespace names the handler of this message as if the class was defined within `Transcript`.
class PictureSeen(Message, namespace="transcript"):
    """A visible picture is not drawn, perhaps because the terminal was not queried yet."""


class _VisiblePictures:
    """The rows of pictures, and of their captions, that are visible in a view.
    `rows`: by the row of the view.
    """

    def __init__(self, view: Widget) -> None:
        self.rows: dict[int, PictureRow] = {}
        self._view = view

    def record_row(self, y: int, row: Row, store: PictureStore | None) -> Row:
        """Note which page row is shown on row `y` of the view, and return it as it is drawn.

        Without a store, `PictureSeen` is posted for the first picture;
        its handler creates the store.
        """
        if not isinstance(row, PictureRow):
            if self.rows:
                self.rows.pop(y, None)
            return row
        if store is None and not self.rows:
            self._view.post_message(PictureSeen().set_sender(self._view))
        self.rows[y] = row
        if row.space is None or store is None:
            return row
        store.request(row.space)
        return store.draw_row(row)

    def redraw(self) -> None:
        """Redraw the rows of pictures, after the pictures that can be drawn have changed."""
        for y in self.rows:
            self._view.refresh(Region(0, y, self._view.size.width, 1))


def _has_picture(row: Row) -> bool:
    """Return whether a picture is drawn on a row, which highlights would erase."""
    return isinstance(row, PictureRow) and row.space is not None


class _StripCache:
    """The strips of a widget's rows, with `margin` columns on their left."""

    def __init__(self, widget: Widget, margin: int) -> None:
        self._widget = widget
        self._margin = Segment(" " * margin)
        self._base = Style()
        self._background: Color | None = None
        """The colour behind everything, for filters; None: not asked for yet."""
        self._cache: dict[int, tuple[Row, Strip]] = {}
        """By the identity of their rows."""

    def restyle(self, base: Style) -> None:
        """Drop all strips, for another base style."""
        self._base, self._background = base, None
        self._cache.clear()

    def trim(self, max_strips: int) -> None:
        """Drop all strips if there are more than `max_strips`."""
        if len(self._cache) > max_strips:
            self._cache.clear()

    def make_strip(self, row: Row, width: int) -> Strip:
        """Return a row as a strip of `width` cells."""
        cached = self._cache.get(id(row))
        # The row is kept with its strip and compared: an `id` is used again
        # after its object is gone.
        if cached is not None and cached[0] is row and cached[1].cell_length == width:
            return cached[1]
        segments = [*Segment.apply_style([self._margin, *row], self._base)]
        segments = [*Segment.simplify(Segment.adjust_line_length(segments, width, self._base))]
        if filters := self._widget.get_line_filters():
            # Filters fail on segments without a style.
            segments = [Segment(text, style or Style.null()) for text, style, _ in segments]
            # Kept here, since Textual works it out anew each time.
            self._background = self._background or self._widget.background_colors[1]
            for each in filters:
                segments = each.apply(segments, self._background)
        strip = Strip(segments, width)
        self._cache[id(row)] = (row, strip)
        return strip


Greeting = Callable[[Canvas, int], list[Row]]
"""Returns the rows of an empty conversation: the greeting,
in the middle of the given number of rows.
"""
ListItems = Callable[[str], list[Item]]
"""Returns the items of a message, by its id."""
SIDE_MARGIN = 2
"""Columns of margin on the left and the right."""
REVERSED_STYLE = Style(color="default", bgcolor="default", bold=False, dim=False, reverse=True)
"""The selection where the colours of the theme are the terminal's, which are unknown."""
_OPENED_ITEMS = ToolItem | FoldItem | ReasoningItem | SummaryItem
"""The items that a click, or the key for the lowest one, opens."""
MAX_CACHED_SCREENS = 4
"""Screens of rows whose strips are kept."""


# The namespace names the handlers of these messages as if the classes were
# defined within `Transcript`.
class Selected(Message, namespace="transcript"):
    """A text was selected."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class NearTop(Message, namespace="transcript"):
    """The oldest message is nearly visible: older ones are needed."""


class FollowChanged(Message, namespace="transcript"):
    """The view stopped or resumed following the conversation's end."""


class Toggled(Message, namespace="transcript"):
    """An item was clicked to be opened or closed."""

    def __init__(self, key: str, message_id: str) -> None:
        super().__init__()
        self.key = key
        self.message_id = message_id


class Clicked(Message, namespace="transcript"):
    """Something was clicked: `kind` is `open` (a session's id),
    `link` (an address) or `image` (a part's id).
    """

    def __init__(self, kind: str, value: str) -> None:
        super().__init__()
        self.kind = kind
        self.value = value


class Transcript(ScrollView, can_focus=False):
    """Shows the messages of a session; follows the end while it grows,
    unless the user has scrolled up.
    """

    DEFAULT_CSS = """
    Transcript { height: 1fr; margin-bottom: 1; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """

    follows = var(default=True, init=False)
    """Whether the view follows the end."""

    # Textual's own selection does not know rows that are not drawn.
    ALLOW_SELECT = False

    # For the decorators of handlers, such as @on(Transcript.Selected).
    Selected = Selected
    PictureSeen = PictureSeen
    NearTop = NearTop
    FollowChanged = FollowChanged
    Toggled = Toggled
    Clicked = Clicked

    def __init__(self, canvas: Canvas, greeting: Greeting) -> None:
        super().__init__()
        self.canvas = canvas
        self._greeting = greeting
        self._renderer = Renderer(canvas)
        self.blocks = Blocks(self._renderer.render)
        self.highlights = Highlights()
        """The matches of the search in the conversation."""
        self._scroll_bar_geometry = ScrollBarGeometry()
        """What is seen of the scroll bar, see `update_scroll_bar`."""
        self._strip_cache = _StripCache(self, SIDE_MARGIN)
        self.selection = Selection(self, self._get_row_text, self.scroll_rows)
        self.pictures = _VisiblePictures(self)

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The scroll bar, created at first use."""
        # Textual creates its own kind of bar here, and has no setting for another.
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = create_scroll_bar(self)
        return self._vertical_scrollbar

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Start a selection."""
        if event.button == 1:
            self.selection.press(event)
            # Without the capture, moves and the release outside of the view would
            # go to other widgets.
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Extend the selection to the mouse."""
        if self.selection.is_selecting:
            self.selection.drag(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Post the selected text."""
        if self.selection.is_selecting:
            self.release_mouse()
            if text := self.selection.release(event):
                self.post_message(self.Selected(text))

    def restyle(self, canvas: Canvas) -> None:
        """Redraw everything for another canvas, with the widget's width."""
        width = max(self.size.width - 2 * SIDE_MARGIN, 10) if self.size.width else canvas.width
        self.canvas = canvas = replace(canvas, width=width)
        self._renderer = Renderer(canvas)
        self.selection.range = None
        self.pictures.rows.clear()
        self._strip_cache.restyle(canvas.styles.of("text", on="background"))
        # Row numbers mean nothing at another width, so the position is kept as a share of the page.
        share = self.scroll_y / self.max_scroll_y if self.max_scroll_y else 1.0
        self.blocks.redraw(self._renderer.render)
        self._update_size()
        self.refresh()
        if not self.follows:
            self.scroll_to(y=share * self.max_scroll_y, animate=False)

    def sync(self, order: Sequence[str], changed_ids: Iterable[str], list_items: ListItems) -> bool:
        """Update the messages, keeping the visible rows in place.
        Return whether it has scrolled.
        """
        old_scroll_row = round(self.scroll_y)
        # The block at the top of the view stays where it is on the screen when rows are
        # added or removed above it.
        anchor = self.blocks.find_block(old_scroll_row) if not self.follows else None
        old_anchor_row = self.blocks.find_top_row(anchor.item.key) if anchor is not None else None
        first_changed_row = self.blocks.sync(order, changed_ids, list_items)
        self._update_size()
        anchor_row = self.blocks.find_top_row(anchor.item.key) if anchor is not None else None
        if anchor_row is not None and old_anchor_row is not None and anchor_row != old_anchor_row:
            shift = anchor_row - old_anchor_row
            self.selection.shift(shift)
            self.scroll_to(y=old_scroll_row + shift, animate=False)
        first_y = max(first_changed_row - round(self.scroll_y), 0)
        # Only from the first changed row on; where the view has scrolled,
        # all of it is redrawn anyway.
        if first_y < self.size.height:
            self.refresh(Region(0, first_y, self.size.width, self.size.height - first_y))
        return round(self.scroll_y) != old_scroll_row

    def redraw_running_calls(self) -> None:
        """Redraw time-dependent items: running calls."""
        if self.blocks.refresh(self._renderer.shows_time):
            self._update_size()
            self.refresh()

    def scroll_to_end(self) -> None:
        """Scroll to the end, and stay there."""
        self.follows = True
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def scroll_rows(self, rows: float) -> None:
        """Scroll by some rows; up is negative."""
        self._scroll_to_row(self.scroll_y + rows)

    def render_line(self, y: int) -> Strip:
        """Return one row of the screen, for Textual's lookup of the mouse target."""
        return self._strip_cache.make_strip(
            self.blocks.get_row(y + round(self.scroll_y)), self.scrollable_content_region.width
        )

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the screen; unchanged ones are the same objects."""
        top = round(self.scroll_y)
        self._strip_cache.trim(MAX_CACHED_SCREENS * max(crop.height, 1))
        # Read once: Textual computes it each time.
        width = self.scrollable_content_region.width
        strips: list[Strip] = []
        is_whole = crop.x == 0 and crop.right >= width
        for number in range(top + crop.y, top + crop.bottom):
            row = self.blocks.get_row(number)
            strip = self._strip_cache.make_strip(
                self.pictures.record_row(number - top, row, self.canvas.pictures), width
            )
            if not _has_picture(row) and (span := self.selection.get_row_span(number)) is not None:
                strip = highlight_cells(strip, span, _make_selection_style(self.canvas.styles))
            if self.highlights.is_active:
                position = self.blocks.locate(number)
                strip = self.highlights.highlight_row(
                    strip, position, SIDE_MARGIN, self.canvas.styles
                )
            strips.append(strip if is_whole else strip.crop(crop.x, crop.right))
        return strips

    def _get_row_text(self, row: int) -> str:
        """Return the text of a row as it is copied: with blanks for numbers of
        lines and signs of a diff.
        """
        pieces = (
            " " * cell_len(segment.text)
            if segment.style and segment.style.meta.get("gutter")
            else segment.text
            for segment in self.blocks.get_row(row)
        )
        return " " * SIDE_MARGIN + "".join(pieces)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end once the user has scrolled there; request older messages near the top."""
        if round(old_value) != round(new_value):
            self.refresh(self.size.region)
        self._scroll_bar_geometry = update_scroll_bar(
            self, self.blocks.height, new_value, self._scroll_bar_geometry
        )
        # A growing page also moves the view down; that must not stop following, so only up does.
        if new_value < old_value:
            self.follows = new_value >= self.max_scroll_y
        elif new_value >= self.max_scroll_y:
            self.follows = True
        height = self.size.height
        self.blocks.drop_far_rows(round(new_value) - height, round(new_value) + 2 * height)
        if new_value < height < self.blocks.height and not self.follows:
            self.post_message(self.NearTop())

    def watch_follows(self) -> None:
        """Post that following the end stopped or resumed."""
        self.post_message(self.FollowChanged())

    def on_resize(self, _event: events.Resize) -> None:
        """Redraw for the new width."""
        if self.size.width and self.canvas.width != max(self.size.width - 2 * SIDE_MARGIN, 10):
            self.restyle(self.canvas)
        self._update_size()

    def on_click(self, event: events.Click) -> None:
        """Open the clicked item."""
        # Textual also calls the end of a drag a click; a double click selects.
        if self.selection.has_dragged or event.chain > 1:
            return
        meta = event.style.meta
        kind = next((kind for kind in ("open", "link", "image") if kind in meta), "")
        if kind:
            self.post_message(self.Clicked(kind, str(meta[kind])))
            return
        self.toggle_first([event.y], is_marked="toggle" in meta)

    def toggle_first(self, rows: Iterable[int], *, is_marked: bool = False) -> bool:
        """Open or close the first item on these rows of the view that can be;
        return whether there is one.

        `is_marked`: the rows are marked as opening an item, of whatever kind.
        """
        blocks = (self.blocks.find_block(y + round(self.scroll_y)) for y in rows)
        for block in blocks:
            if block is not None and (is_marked or isinstance(block.item, _OPENED_ITEMS)):
                return self.post_message(self.Toggled(block.item.key, block.message_id))
        return False

    def _scroll_to_row(self, row: float) -> None:
        self.follows = row >= self.max_scroll_y
        self.scroll_to(y=max(row, 0), animate=False)

    def _update_size(self) -> None:
        if not self.blocks.height:
            self.blocks.empty_page = self._greeting(self.canvas, self.size.height)
        size = Size(self.size.width, self.blocks.height)
        if size != self.virtual_size:
            # Set without its watcher, which would lay the whole screen out again:
            # nothing but the bar moves.
            self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), size)
            self._scroll_bar_geometry = update_scroll_bar(
                self, self.blocks.height, self.scroll_y, self._scroll_bar_geometry
            )
        if self.follows and not self.selection.is_selecting:
            self.scroll_to(y=self.max_scroll_y, animate=False)


def _make_selection_style(styles: Styles) -> Style:
    """Return the selection's style; reversed with the terminal's own colours, which are unknown."""
    return (
        styles.of("background", on="primary")
        if styles.theme.background.startswith("#")
        else REVERSED_STYLE
    )
