"""The real program in a real terminal."""

import os
import pty
import select
import signal
import subprocess
import time
import weakref

from codeloop.cli.questions.prompter import READING_SECONDS
from tests.cli.program import Desk


def end_session(child: subprocess.Popen[str]) -> None:
    """End what a test that failed left: without its terminal it would look for input for ever."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


class Terminal:
    """A program on a pseudo-terminal: type into it, read what it shows."""

    def __init__(self, desk: Desk, *arguments: str, term: str = "dumb") -> None:
        self._main, side = pty.openpty()
        self.shown = ""
        self._read = 0
        self._shown_at = 0.0
        options = desk.options(TERM=term)
        self.child = subprocess.Popen(
            [*desk.quick_command, *arguments],
            **options,
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        weakref.finalize(self, end_session, self.child)

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """Read until the text is shown after what was waited for before;
        return all that was shown.
        """
        until = time.monotonic() + seconds
        while text not in self.shown[self._read :]:
            assert time.monotonic() < until, f"{text!r} never came: {self.shown!r}"
            # Before the look: what it shows as it ends is read, too.
            has_ended = self.child.poll() is not None
            if not self._more(0.1) and has_ended:
                assert text in self.shown[self._read :], f"{text!r} never came: {self.shown!r}"
        self._read = self.shown.index(text, self._read) + len(text)
        return self.shown

    def type(self, text: str, end: str = "\n") -> None:
        """Type a line; `end` "": without sending it. A question is read first, as a person does."""
        if self.shown.endswith((": ", "[y/N] ")):
            time.sleep(max(self._shown_at + READING_SECONDS + 0.05 - time.monotonic(), 0))
        self.type_at_once(text, end)

    def type_at_once(self, text: str, end: str = "\n") -> None:
        """Type a line, whatever is shown."""
        os.write(self._main, text.encode() + end.encode())

    def end(self, seconds: float = 60) -> int:
        """Read to the end and return the exit code."""
        until = time.monotonic() + seconds
        while self.child.poll() is None and time.monotonic() < until:
            self._more(0.05)
        while self._more(0):
            pass
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        os.close(self._main)
        return self.child.wait(timeout=60)

    def read(self, seconds: float) -> None:
        """Read what it shows; wait at most `seconds` for it."""
        self._more(seconds)

    def _more(self, seconds: float) -> bool:
        if not select.select([self._main], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._main, 65_536)
        except OSError:
            return False
        self._shown_at = time.monotonic()
        self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)
