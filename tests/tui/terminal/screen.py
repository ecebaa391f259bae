"""The real program on a pseudo-terminal that controls it,
and what state it leaves the terminal in.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import weakref
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import Any

from tests.cli.program import Desk

_TAKE = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class ScreenTerminal:
    """A program on a terminal of its own. `modes`: what it has switched (by number), and how."""

    def __init__(
        self,
        desk: Desk,
        *arguments: str,
        command: list[str] | None = None,
        columns: int = 80,
        rows: int = 24,
        **environment: str,
    ) -> None:
        """`command`: what starts the program, if it isn't the desk's."""
        self.main, self.side = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.side)
        self.shown = ""
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        python = desk.command[0]
        self.child = subprocess.Popen(
            [python, "-I", "-S", "-c", _TAKE, *(command or desk.command), *arguments],
            **desk.options(**{"TERM": "xterm-256color", "COLORTERM": "truecolor", **environment}),
            stdin=self.side,
            stdout=self.side,
            stderr=self.side,
            start_new_session=True,
        )
        weakref.finalize(self, _end, self.child)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal."""
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Type keys."""
        os.write(self.main, text.encode())

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Read until a text is shown; what was shown before no longer counts."""
        until = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < until, f"{text!r} never came: {self.shown[-3000:]!r}"
            self.read(0.1)
        self.shown = self.shown[self.shown.index(text) + len(text) :]

    def read(self, seconds: float) -> bool:
        """Read what comes within this time."""
        if not select.select([self.main], [], [], seconds)[0]:
            return False
        with suppress(OSError):
            self._take(os.read(self.main, 65_536))
            return True
        return False

    def end(self, seconds: float = 60) -> int:
        """Read until the program has ended; return its exit code."""
        until = time.monotonic() + seconds
        while self.child.poll() is None:
            assert time.monotonic() < until, f"it never ended: {self.shown[-3000:]!r}"
            self.read(0.05)
        while self.read(0):
            pass
        return self.child.wait()

    def lost(self, seconds: float = 60) -> str:
        """Return what is not as it was before the program; "": the terminal is restored.

        After the end of the program this waits for its watcher: that restores what the
        program had no time to write.
        """
        until = time.monotonic() + seconds
        while (
            (wrong := self._find_lost())
            and self.child.poll() is not None
            and time.monotonic() < until
        ):
            self.read(0.05)
        return wrong

    def _find_lost(self) -> str:
        wrong = [
            f"mode {number} is on"
            for number, is_on in self.modes.items()
            if is_on != (number in {7, 25})
        ]
        if re.findall(r">4;1m|>4m", self._all)[-1:] == [">4;1m"] or self._all.count(
            "39s"
        ) != self._all.count("39r"):
            wrong.append("keys are written otherwise")
        if termios.tcgetattr(self.side) != self.before:
            wrong.append("echo or other attributes differ")
        return ", ".join(wrong)

    def close(self) -> None:
        """Close the terminal, as its window does."""
        os.close(self.side)
        os.close(self.main)

    def _take(self, data: bytes) -> None:
        text = self._decode(data)
        self.shown += text
        self._all += text

    _all = ""

    @property
    def modes(self) -> dict[int, bool]:
        """What was switched last, by number."""
        return {
            int(number): how == "h" for number, how in re.findall(r"\x1b\[\?(\d+)([hl])", self._all)
        }


def _end(child: "subprocess.Popen[Any]") -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
