"""`TextInput`: the dialog that asks for a line of text."""

from rich.segment import Segment
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from codeloop.tui.dialogs.parts.dialog import Dialog, GetStyles
from codeloop.tui.dialogs.parts.dialog_rows import draw_keys, draw_text, draw_title
from codeloop.tui.render.canvas import Row
from codeloop.tui.widgets.line_input import LineInput
from codeloop.tui.widgets.rows_view import RowsView


class TextInput(Dialog[str | None]):
    """Closes with the typed line, or None when it is cancelled.

    `text`: the line to begin with; `about`: an explanation; `is_secret`: the line is shown as dots.
    """

    def __init__(
        self,
        title: str,
        get_styles: GetStyles,
        text: str = "",
        *,
        about: str = "",
        is_secret: bool = False,
    ) -> None:
        super().__init__(get_styles)
        self.keys: tuple[tuple[str, str], ...] = (("enter", "confirm"), ("esc", "cancel"))
        self._title = title
        self._text = text
        self._about = about
        self._is_secret = is_secret

    def compose(self) -> ComposeResult:
        """Yield the title, the line, and the keys."""
        with Vertical(id="dialog-box"):
            yield RowsView("text-title")
            yield LineInput(
                self._text, password=self._is_secret, select_on_focus=False, id="text-line"
            )
            yield RowsView("text-keys")

    def on_mount(self) -> None:
        """Focus the line."""
        self.query_one(Input).focus()

    def draw(self) -> None:
        """Redraw everything."""
        styles, outer = self.get_styles(), self.compute_box_width(70)
        width = outer - 4
        self.query_one("#dialog-box").styles.width = outer
        head: list[Row] = [draw_title(self._title, styles, width), []]
        if self._about:
            head += [*draw_text(self._about, styles, width, "text_muted"), [Segment("")]]
        self.query_one("#text-title", RowsView).show(head, len(head))
        keys = draw_keys([*self.keys], styles, width)
        self.query_one("#text-keys", RowsView).show(keys, len(keys))

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)

    def on_key(self, event: events.Key) -> None:
        """Cancel with Escape."""
        if event.key == "escape":
            event.stop()
            self.dismiss(None)
