"""What can follow the leader key, above the last row of the screen: shown to who hesitates."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from codeloop.tui.render.canvas import Row
from codeloop.tui.screen.bare import SteadyWidget, app_of
from codeloop.tui.themes.styles import Styles
from codeloop.tui.ui import Ui

_COLUMN = 36
"""Cells of a key with what it does."""


READS = 15.0
"""Seconds that the leader waits while the keys are listed."""


class LeaderKeys(SteadyWidget):
    """A table of keys, column by column."""

    DEFAULT_CSS = """
    LeaderKeys { layer: keys; dock: bottom; width: 1fr; margin-bottom: 1; background: $background-panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._colours: Styles | None = None
        self._rows: list[Row] = []

    def show(self, keys: Sequence[tuple[str, str]], styles: Styles) -> None:
        """Show keys, each with what it does."""
        width = app_of(self).size.width
        columns = max(min(width // _COLUMN, len(keys)), 1)
        height = -(-len(keys) // columns)
        room, wide = width // columns, max((cell_len(key) for key, _ in keys), default=0)
        key_style, style = styles.of("primary", "bold"), styles.of("text")
        rows: list[Row] = [[] for _ in range(height)]
        for at, (key, title) in enumerate(keys):
            rows[at % height] += [
                Segment(f" {key:>{wide}}  ", key_style),
                Segment(f"{title[: room - wide - 4]:<{max(room - wide - 3, 0)}}", style),
            ]
        self._colours, self._rows = styles, rows
        self.styles.height = height
        self.display = True
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return a row."""
        if self._colours is None or y >= len(self._rows):
            return Strip.blank(self.size.width)
        base = self._colours.of("text", on="background_panel")
        return Strip(self._rows[y]).apply_style(base).adjust_cell_length(self.size.width, base)


async def list_keys(ui: Ui) -> float:
    """List what can follow the leader; return for how many seconds it waits now."""
    ui.keys.wait(READS)
    listed = next(iter(ui.query(LeaderKeys)), None)
    if listed is None:
        listed = LeaderKeys()
        await ui.mount(listed)
    titles = {row.id: row.title for row in ui.table}
    listed.show([(key, titles[name]) for key, name in ui.keys.led()], ui.appearance.styles)
    return READS
