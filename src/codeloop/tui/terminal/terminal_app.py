"""An app that reaches the person beyond its own screen."""

import os
import shutil

from textual.app import App

from codeloop.tui.terminal.outward import clipboard_sequence, copy_programs, give, notification


class TerminalApp(App[int], inherit_bindings=False):
    """Copies to the desktop's clipboard, and calls a person who looks elsewhere."""

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text in each way that may reach the person's desktop."""
        self._clipboard = text
        self._write(clipboard_sequence(text, os.environ))
        if programs := copy_programs(os.environ):
            self.run_worker(give(text, programs, shutil.which), exit_on_error=False)

    def call_back(self, title: str, text: str, *, has_bell: bool, has_notice: bool) -> None:
        """Have a person look here, who looks elsewhere as far as the terminal knows."""
        if self.app_focus:
            return
        if has_notice:
            self._write(notification(title, text, os.environ))
        if has_bell:
            self.bell()

    def _write(self, sequence: str) -> None:
        if self._driver is not None and sequence:
            self._driver.write(sequence)
            self._driver.flush()
