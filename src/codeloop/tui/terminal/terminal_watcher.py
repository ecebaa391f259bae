"""A small process that restores the terminal if this process ends without doing so, as after `kill -9`."""

import os
import subprocess
import termios
from contextlib import suppress
from typing import Any

from codeloop.tui.terminal.sequences import DEFAULT_CURSOR, PLAIN_KEYS, RESTORE_TITLE, needs_visible_cursor

RESTORE_SEQUENCES = (
    # Reports of the mouse.
    "\033[?1000l\033[?1003l\033[?1015l\033[?1016l\033[?1006l"
    # Reports of focus, pastes and sizes; synchronised output.
    "\033[?1004l\033[?2004l\033[?2048l\033[?2026l"
    f"{RESTORE_TITLE}"
    # Keys, line wrap, the main screen, the cursor, colours.
    f"{PLAIN_KEYS}\033[<u\033[?7h\033[?1049l\033[?25h\033[0m"
)
"""The sequences that restore the state that the terminal had before the UI."""

_TERMINAL_FLAGS = {
    3: {"echo": termios.ECHO, "icanon": termios.ICANON, "iexten": termios.IEXTEN, "isig": termios.ISIG},
    0: {
        "ixon": termios.IXON,
        "ixoff": termios.IXOFF,
        "icrnl": termios.ICRNL,
        "inlcr": termios.INLCR,
        "igncr": termios.IGNCR,
    },
}
"""The terminal attributes that the UI changes, by their names for `stty`: the local flags (index 3 of what
`termios.tcgetattr` returns) and the input flags (index 0)."""

# The last line that the script reads says whether the UI has the terminal. If it has, the terminal is restored when
# this process ends; but attributes that a shell has set since are kept.
_SCRIPT = """
exec 3<&1
while read -r line; do
    state=$line
    [ "$state" = on ] && raw=$(stty -g <&3)
done
[ "$state" = on ] || exit 0
printf '%s' "$0"
[ "$(stty -g <&3)" = "$raw" ] && stty "$@" <&3
"""


class TerminalWatcher:
    """Watches this process from another session, which signals to this process's group do not reach."""

    def __init__(self, terminal: int, attributes: list[Any]) -> None:
        """Start the watcher, if there is `/bin/sh`. `attributes`: those that the terminal had before the UI."""
        settings = [
            name if attributes[index] & bit else f"-{name}"
            for index, bits in _TERMINAL_FLAGS.items()
            for name, bit in bits.items()
        ]
        self._process: subprocess.Popen[bytes] | None = None
        # Without a watcher, only a UI that is killed leaves the terminal unrestored.
        with suppress(OSError):
            self._process = subprocess.Popen(
                [
                    "/bin/sh",
                    "-c",
                    _SCRIPT,
                    RESTORE_SEQUENCES + DEFAULT_CURSOR * needs_visible_cursor(os.environ),
                    *settings,
                ],
                stdin=subprocess.PIPE,
                stdout=terminal,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
                # It must not keep the project's file system busy.
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
            )

    def set_on(self, is_on: bool) -> None:
        """Set whether the UI has the terminal: only then the watcher restores it."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(b"on\n" if is_on else b"off\n")
