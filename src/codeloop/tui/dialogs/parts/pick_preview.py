"""`PickPreview`: shows details of the row under the cursor beside a picker's list,
after a pause in typing.
"""

from asyncio import sleep
from collections.abc import Sequence
from functools import partial
from typing import Generic

from rich.segment import Segment

from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.errors import CodeloopError
from codeloop.tui.dialogs.parts.dialog import Dialog
from codeloop.tui.dialogs.parts.pick import PickSource, T
from codeloop.tui.render.canvas import Row
from codeloop.tui.themes.styles import Styles
from codeloop.tui.widgets.rows_view import RowsView

TYPING_PAUSE = 0.12
"""Seconds without a key before a search or a preview starts."""


class PickPreview(Generic[T]):
    """Draws the preview of a value into `#picker-preview` of a dialog,
    as high as its `#picker-list`.
    """

    def __init__(self, dialog: Dialog[T | None], source: PickSource[T]) -> None:
        self._dialog = dialog
        self._source = source
        self._value: T | None = None
        """The value whose preview is shown."""
        self._styles: Styles | None = None

    def fit(self, styles: Styles, *, is_visible: bool) -> bool:
        """Show or hide the preview; return whether it must be drawn anew: it was hidden,
        or the theme has changed.
        """
        view = self._dialog.query_one("#picker-preview", RowsView)
        is_new = is_visible and (not view.display or self._styles is not styles)
        if is_new:
            self._value, self._styles = None, styles
        view.display = is_visible
        return is_new

    def show(self, value: T | None) -> None:
        """Start drawing the preview of a value, unless it is shown already."""
        if self._source.preview is not None and value != self._value:
            self._value = value
            self._dialog.run_worker(partial(self._draw, value), exclusive=True, group="preview")

    async def _draw(self, value: T | None) -> None:
        view = self._dialog.query_one("#picker-preview", RowsView)
        await sleep(TYPING_PAUSE)
        rows: Sequence[Row] = ()
        if value is not None and self._source.preview is not None and view.display:
            try:
                rows = await self._source.preview(value, max(view.size.width - 1, 10))
            except CodeloopError as error:
                rows = [[Segment(escape_controls(str(error)))]]
        height = self._dialog.query_one("#picker-list", RowsView).size.height
        view.show(rows, height)
        # The end matters most, such as the latest messages of a session.
        view.scroll_to_row(max(len(rows) - 1, 0), max(len(rows) - 1, 0))
