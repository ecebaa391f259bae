"""The dialog that shows the address of a sign-in page, to be opened in a browser."""

from textual import events

from codeloop.kit.terminal_text import escape_controls, one_line
from codeloop.tui.dialogs.parts.dialog import Colours
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.widgets.base import app_of


class SignInScreen(TextInput):
    """Shows the address to sign in at; closes with the pasted text, or None. `then`: says what to paste afterwards."""

    def __init__(self, who: str, url: str, then: str, colours: Colours) -> None:
        about = f"Open this address in a browser:\n\n{escape_controls(url)}\n\n{escape_controls(then)}".rstrip()
        super().__init__(f"Sign in at {one_line(who, 40)}", colours, about=about)
        self.keys = (("enter", "continue"), ("ctrl+y", "copy the address"), ("esc", "cancel"))
        self._url = url

    def on_key(self, event: events.Key) -> None:
        """Copy the address, or close."""
        if event.key == "ctrl+y":
            event.stop()
            app_of(self).copy_to_clipboard(self._url)
            self.notify("The address is copied.", markup=False)
        else:
            super().on_key(event)
