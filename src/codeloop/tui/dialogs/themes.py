"""The dialog of themes: the one under the cursor is shown at once."""

from collections.abc import Callable, Sequence

from codeloop.tui.dialogs.parts.dialog import Colours
from codeloop.tui.dialogs.parts.picks import Pick, PickSource
from codeloop.tui.dialogs.picker import Picker

WIDTH = 36
"""Cells of the box, which leaves most of the conversation in sight, in the theme's colours."""


class ThemePicker(Picker[str]):
    """Closes with a theme's name. `show` changes the theme of the screen; without a choice, it is changed back."""

    DEFAULT_CSS = """
    ThemePicker, ThemePicker.-opaque { background: transparent; align: right top; }
    ThemePicker #dialog-box { height: 1fr; margin: 0 0 1 0; }
    """

    def __init__(self, names: Sequence[str], current: str, show: Callable[[str], None], colours: Colours) -> None:
        self._names = names
        self._first = current
        self._show = show
        self._on_screen = current
        source = PickSource(
            title="Themes",
            load=self._load_rows,
            on_move=self._show_theme,
            start=current,
            choose="use it",
            empty="No theme.",
        )
        super().__init__(source, colours)

    def box_width(self, most: int) -> int:
        """Return the width of the box, in cells: narrow."""
        return super().box_width(min(most, WIDTH))

    async def _load_rows(self) -> Sequence[Pick[str]]:
        return [Pick(name, name, mark="●" if name == self._first else "") for name in self._names]

    def _show_theme(self, name: str | None) -> None:
        if name is not None and name != self._on_screen:
            self._on_screen = name
            self._show(name)

    def cancel(self) -> None:
        """Close without a choice, and show the theme again that there was at first."""
        if self._on_screen != self._first:
            self._show(self._first)
        super().cancel()
