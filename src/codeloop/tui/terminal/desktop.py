"""Reaches the user's desktop from the terminal: opens links, shows notifications, and sets the window's title."""

import os
import sys
from collections.abc import Callable, Mapping

from codeloop.kit.child_process import ChildProcess
from codeloop.kit.desktop_programs import make_desktop_launch
from codeloop.kit.text.terminal_text import escape_answer_controls, one_line
from codeloop.schema.wire import replace
from codeloop.tui.terminal.multiplexer import pass_through
from codeloop.tui.terminal.sequences import PLAIN_TERMINALS

_MAX_TITLE_LENGTH, _MAX_TEXT_LENGTH = 60, 200
"""Characters of a notification's title and text."""
_MAX_WINDOW_TITLE_LENGTH = 80
_RXVT_TERMS = ("foot", "rxvt", "contour")
"""Prefixes of `TERM` of terminals that have rxvt's sequence for notifications."""


def find_opener(link: str, environment: Mapping[str, str], platform: str = sys.platform) -> tuple[str, ...]:
    """Return the command that opens a link on the user's desktop; empty: the link is invalid, or no desktop in reach.

    Python's `webbrowser` is not used: it might run a browser in this terminal, and takes a link that begins with a dash
    for an option.
    """
    if not link.startswith(("http://", "https://", "mailto:")):
        return ()
    # On a remote machine a browser would open where nobody sees it.
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return ()
    if platform == "darwin":
        return ("open", link)
    if environment.get("WSL_DISTRO_NAME"):
        return ("wslview", link)
    return ("xdg-open", link) if _has_any(environment, "WAYLAND_DISPLAY", "DISPLAY") else ()


async def run_opener(command: tuple[str, ...]) -> bool:
    """Run a command of `find_opener`, detached from this terminal; return whether it started."""
    try:
        ChildProcess(replace(make_desktop_launch(command), is_apart=True))
    except OSError:
        return False
    return True


def make_notification(title: str, text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that shows a desktop notification; "": the terminal has none."""
    # A semicolon ends a field of these sequences.
    title = one_line(title, _MAX_TITLE_LENGTH).replace(";", ",")
    text = one_line(text, _MAX_TEXT_LENGTH).replace(";", ",")
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if environment.get("KITTY_WINDOW_ID") or term == "xterm-kitty":
        sequence = f"\x1b]99;i=codeloop:d=0;{title}\x1b\\\x1b]99;i=codeloop:p=body;{text}\x1b\\"
    elif term.startswith(_RXVT_TERMS) or _has_any(
        environment, "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE", "KONSOLE_VERSION"
    ):
        sequence = f"\x1b]777;notify;{title};{text}\x1b\\"
    elif _has_any(environment, "ITERM_SESSION_ID") or program in {"iTerm.app", "mintty", "WarpTerminal"}:
        sequence = f"\x1b]9;{title}: {text}\x07"
    else:
        return ""
    return pass_through(sequence, environment)


def _has_any(environment: Mapping[str, str], *names: str) -> bool:
    """Return whether one of the variables is set, and not empty."""
    return any(environment.get(name) for name in names)


class TerminalWindow:
    """The title of the terminal's window, and its attention requests.

    `write` writes a sequence to the terminal; `bell` rings its bell.
    """

    def __init__(self, write: Callable[[str], None], bell: Callable[[], None]) -> None:
        self._write = write
        self._bell = bell
        self._title = ""
        """The title that was set last."""

    def set_title(self, title: str) -> None:
        """Set the title of the window or tab."""
        if title != self._title and os.environ.get("TERM") not in PLAIN_TERMINALS:
            self._title = title
            self._write(f"\x1b]2;{one_line(title, _MAX_WINDOW_TITLE_LENGTH, escape_answer_controls)}\x1b\\")

    def restore_title(self) -> None:
        """Set the title again, after another program had the terminal."""
        title, self._title = self._title, ""
        self.set_title(title)

    def alert(self, title: str, text: str, *, has_bell: bool, has_notification: bool) -> None:
        """Alert a user who is looking elsewhere, with the bell and a desktop notification."""
        if has_notification:
            self._write(make_notification(title, text, os.environ))
        if has_bell:
            self._bell()
