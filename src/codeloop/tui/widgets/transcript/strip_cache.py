"""`StripCache` makes Textual's strips of rows, and keeps them: a row that has not changed is styled only once."""

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from codeloop.tui.render.canvas import Row


class StripCache:
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
        # The row is kept with its strip and compared: an `id` is used again after its object is gone.
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
