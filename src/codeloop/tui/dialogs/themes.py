"""The dialog of themes, which applies the theme under the cursor at once."""

from collections.abc import Callable, Sequence

from codeloop.tui.dialogs.parts.dialog import GetStyles
from codeloop.tui.dialogs.parts.pick import Pick, PickSource
from codeloop.tui.dialogs.picker import Picker

MAX_BOX_WIDTH = 36
"""Cells of the box: so narrow that most of the conversation stays visible,
in the theme's colours.
"""


class ThemePicker(Picker[str]):
    """Lists the themes; closes with the name of one.

    `show` is called with the theme under the cursor,
    and after cancelling with the one that was in use.
    """

    DEFAULT_CSS = """
    ThemePicker, ThemePicker.-opaque { background: transparent; align: right top; }
    ThemePicker #dialog-box { height: 1fr; margin: 0 0 1 0; }
    """

    def __init__(
        self, names: Sequence[str], current: str, show: Callable[[str], None], get_styles: GetStyles
    ) -> None:
        self._names = names
        self._initial_name = current
        self._show = show
        self._shown_name = current
        source = PickSource(
            title="Themes",
            load=self._load_rows,
            on_move=self._show_theme,
            start=current,
            choose_label="use it",
            empty_message="No theme.",
        )
        super().__init__(source, get_styles)

    def compute_box_width(self, max_width: int) -> int:
        """Return the width of the box, in cells: at most `MAX_BOX_WIDTH`."""
        return super().compute_box_width(min(max_width, MAX_BOX_WIDTH))

    async def _load_rows(self) -> Sequence[Pick[str]]:
        return [
            Pick(name, name, mark="●" if name == self._initial_name else "") for name in self._names
        ]

    def _show_theme(self, name: str | None) -> None:
        if name is not None and name != self._shown_name:
            self._shown_name = name
            self._show(name)

    def cancel(self) -> None:
        """Close without a choice, and restore the theme that was in use."""
        if self._shown_name != self._initial_name:
            self._show(self._initial_name)
        super().cancel()
