"""`SignInScreen`: the dialog that shows the address of a sign-in page,
and asks for the code that the page shows.
"""

from textual import events

from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.tui.dialogs.parts.dialog import GetStyles
from codeloop.tui.dialogs.parts.text_input import TextInput
from codeloop.tui.widgets.base_widgets import get_app


class SignInScreen(TextInput):
    """Shows the address of a sign-in page; closes with the pasted text.

    `next_step`: what to do after signing in.
    """

    def __init__(self, service: str, url: str, next_step: str, get_styles: GetStyles) -> None:
        about = f"Open this address in a browser:\n\n{escape_controls(url)}\n\n{escape_controls(next_step)}".rstrip()
        super().__init__(f"Sign in at {one_line(service, 40)}", get_styles, about=about)
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
