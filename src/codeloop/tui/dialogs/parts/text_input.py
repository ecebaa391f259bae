"""`TextInput`: the dialog that asks for a line of text; `SignInScreen`: asks for the code of a sign-in page."""

from rich.segment import Segment
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.tui.dialogs.parts.dialog import Colours, Dialog, draw_keys, draw_text, draw_title
from codeloop.tui.render.canvas import Row
from codeloop.tui.widgets.base_widgets import get_app
from codeloop.tui.widgets.line_input import LineInput
from codeloop.tui.widgets.rows_view import RowsView


class TextInput(Dialog[str | None]):
    """Closes with the typed line, or None when it is cancelled.

    `text`: the line to begin with; `about`: an explanation; `is_secret`: the line is shown as dots.
    """

    def __init__(
        self, title: str, colours: Colours, text: str = "", *, about: str = "", is_secret: bool = False
    ) -> None:
        super().__init__(colours)
        self.keys: tuple[tuple[str, str], ...] = (("enter", "confirm"), ("esc", "cancel"))
        self._title = title
        self._text = text
        self._about = about
        self._is_secret = is_secret

    def compose(self) -> ComposeResult:
        """Yield the title, the line, and the keys."""
        with Vertical(id="dialog-box"):
            yield RowsView("text-title")
            yield LineInput(self._text, password=self._is_secret, select_on_focus=False, id="text-line")
            yield RowsView("text-keys")

    def on_mount(self) -> None:
        """Focus the line."""
        self.query_one(Input).focus()

    def draw(self) -> None:
        """Redraw everything."""
        styles, outer = self.colours(), self.box_width(70)
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


class SignInScreen(TextInput):
    """Shows the address of a sign-in page; closes with the pasted text. `then`: what to do after signing in."""

    def __init__(self, service: str, url: str, then: str, colours: Colours) -> None:
        about = f"Open this address in a browser:\n\n{escape_controls(url)}\n\n{escape_controls(then)}".rstrip()
        super().__init__(f"Sign in at {one_line(service, 40)}", colours, about=about)
        self.keys = (("enter", "continue"), ("ctrl+y", "copy the address"), ("esc", "cancel"))
        self._url = url

    def on_key(self, event: events.Key) -> None:
        """Copy the address, or close."""
        # The address may be wider than the screen: wrapped, it can't be selected with the mouse.
        if event.key == "ctrl+y":
            event.stop()
            get_app(self).copy_to_clipboard(self._url)
            self.notify("The address is copied.", markup=False)
        else:
            super().on_key(event)
