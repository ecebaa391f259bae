"""The scroll bar of a conversation, which moves with nearly every frame while a model writes."""

from operator import methodcaller

from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip

from codeloop.tui.screen.bare import app_of


class PlainScrollBar(ScrollBar):
    """Draws each kind of row once: the library's own one draws every row by itself, at more cost than the text."""

    _kept: tuple[tuple[object, ...], list[Strip]] | None = None
    """The rows that were drawn last, by what they depend on."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return rows of the bar."""
        if not self.is_attached:  # a tab that is closed may be drawn once more
            return [Strip.blank(crop.width)] * crop.height
        bar = self.render()
        if not isinstance(bar, ScrollBarRender) or not self.vertical:
            return super().render_lines(crop)
        look = (crop, bar.virtual_size, bar.window_size, bar.position, str(bar.style))
        if self._kept is not None and self._kept[0] == look:
            return self._kept[1]
        style = app_of(self).console.get_style(bar.style)
        if style.bgcolor is None or style.color is None:
            return super().render_lines(crop)
        rows = ScrollBarRender.render_bar(
            self.size.height,
            bar.virtual_size,
            bar.window_size,
            bar.position,
            bar.thickness,
            back_color=style.bgcolor,
            bar_color=style.color,
        ).segments
        strips: dict[int, Strip] = {}
        for row in rows:
            if id(row) not in strips:
                strip = Strip([row], bar.thickness)
                for each in self.get_line_filters():
                    strip = strip.apply_filter(each, self.background_colors[1])
                strips[id(row)] = strip
        self._kept = look, [strips[id(row)] for row in rows][crop.y : crop.bottom]
        return self._kept[1]


class PlainlyBarredView(ScrollView):
    """Has such a bar at its right."""

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The bar, made when it is first asked for."""
        if self._vertical_scrollbar is None:
            self._vertical_scrollbar = PlainScrollBar(name="vertical", thickness=self.scrollbar_size_vertical)
            self._vertical_scrollbar.display = False
            methodcaller("_start_widget", self, self._vertical_scrollbar)(app_of(self))  # as the library starts its own
        return self._vertical_scrollbar
