"""`Confirm`: the dialog that asks for a confirmation, by the keys y and n."""

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from codeloop.tui.dialogs.parts.dialog import Dialog, GetStyles
from codeloop.tui.dialogs.parts.dialog_rows import draw_keys, draw_text, draw_title
from codeloop.tui.widgets.rows_view import RowsView


class Confirm(Dialog[bool]):
    """Asks before an action; closes with True if the user pressed y,
    whose label is `confirm_label`.
    """

    def __init__(self, title: str, text: str, confirm_label: str, get_styles: GetStyles) -> None:
        super().__init__(get_styles)
        self._title = title
        self._text = text
        self._confirm_label = confirm_label

    def compose(self) -> ComposeResult:
        """Yield the question and the keys."""
        with Vertical(id="dialog-box"):
            yield RowsView("confirm-rows")

    def draw(self) -> None:
        """Redraw everything."""
        styles, outer = self.get_styles(), self.compute_box_width(70)
        width = outer - 4
        self.query_one("#dialog-box").styles.width = outer
        keys = draw_keys([("y", self._confirm_label), ("n", "cancel")], styles, width)
        rows = [
            draw_title(self._title, styles, width),
            [],
            *draw_text(self._text, styles, width),
            [],
            *keys,
        ]
        self.query_one(RowsView).show(rows, min(len(rows), max(self.size.height - 4, 5)))

    def on_key(self, event: events.Key) -> None:
        """Close with the answer."""
        event.stop()
        if (key := event.key.lower()) in {"y", "n", "escape"}:
            self.dismiss(key == "y")
