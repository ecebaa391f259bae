"""The terminal as the UI uses it: given back after any end, also when it is closed or the process is killed."""

import fcntl
import os
import select
import struct
import termios
from codecs import getincrementaldecoder
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, Any, cast

from textual import constants, events
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from codeloop.tui.terminal.arrivals import Arrival, Arrivals
from codeloop.tui.terminal.sequences import (
    ANY_CURSOR,
    HELD_KEYS,
    LETTERS_AS_THEY_ARE,
    PLAIN_KEYS,
    KeyParser,
    needs_cursor,
)
from codeloop.tui.terminal.terminal_app import MUTE, TerminalApp
from codeloop.tui.terminal.watcher import FORMER_NAME, TerminalWatcher

ASK_GROUND = "\x1b]11;?\x1b\\"
"""Asks the terminal for its background colour; the answer comes back under the same number."""
GROUND = "11"
KEEP_NAME = "\x1b[22;2t"
"""Has the terminal remember what its window is called."""
READ = 1 << 16
"""Bytes that are read at a time: of a large paste, above all."""

PATIENCE = 1.2 * constants.ESCAPE_DELAY
"""Seconds after which nothing belongs to an escape any more."""


class TerminalGone(Message):
    """The terminal was closed."""


class TerminalSaid(Message):
    """What the terminal has answered: `command` is the number of the question."""

    def __init__(self, command: str, text: str) -> None:
        super().__init__()
        self.command = command
        self.text = text


class WatchedDriver(LinuxDriver):
    """The library's terminal, with somebody who restores it if we can't.

    Its thread for what is typed sleeps until there is something, and ends with the terminal.
    """

    _watcher: TerminalWatcher | None = None
    _wake: tuple[int, int] | None = None
    """A pipe that ends the thread."""

    def start_application_mode(self) -> None:
        """Take the terminal, at the start and after a stop."""
        if not isinstance(self._file, _LastingFile):
            self._file = cast("Any", _LastingFile(self._file))
        self._wake = self._wake or os.pipe()
        super().start_application_mode()
        if os.environ.get("TERM") not in MUTE:
            self.write(HELD_KEYS + LETTERS_AS_THEY_ARE + ASK_GROUND + KEEP_NAME)
        if self.attrs_before is not None:
            self._watcher = self._watcher or TerminalWatcher(self.fileno, self.attrs_before)
            self._watcher.set_on(True)

    def stop_application_mode(self) -> None:
        """Leave the terminal, at the end and before a stop."""
        if isinstance(self._app, TerminalApp):
            self.write(self._app.farewell)
        if os.environ.get("TERM") not in MUTE:
            self.write(PLAIN_KEYS + ANY_CURSOR * needs_cursor(os.environ) + FORMER_NAME)
        super().stop_application_mode()

    def disable_input(self) -> None:
        """End the thread that reads."""
        if self._wake is None:
            return
        os.write(self._wake[1], b"\0")
        super().disable_input()
        for descriptor in self._wake:
            os.close(descriptor)
        self._wake = None

    def close(self) -> None:
        """Write what still has to be written; the terminal is as it was before."""
        super().close()
        if self._watcher is not None:
            self._watcher.set_on(False)

    def run_input_thread(self) -> None:
        """Read until the UI leaves the terminal, or it is gone."""
        if self._wake is None:
            return
        wake, decode = self._wake[0], getincrementaldecoder("utf-8")(errors="replace").decode
        arrivals, parser = Arrivals(), KeyParser()
        early = _waiting(self.fileno)
        wait: float | None = None
        while True:
            ready, _, _ = select.select([self.fileno, wake], [], [], wait)
            if wake in ready:
                return
            if not ready:  # an escape that nothing followed is a key
                wait = None if arrivals.is_whole else PATIENCE
                self._arrived(arrivals.rest(), parser)
                self._send(parser.tick())
                continue
            data = b""
            with suppress(OSError):
                data = os.read(self.fileno, READ)
            if not data:
                self.send_message(TerminalGone())
                return
            if early:  # until just now the terminal made a line feed of Enter
                data = data[:early].replace(b"\n", b"\r") + data[early:]
                early = max(early - len(data), 0)
            self._arrived(arrivals.take(decode(data)), parser)
            wait = PATIENCE

    def _arrived(self, arrivals: Iterable[Arrival], parser: KeyParser) -> None:
        for arrival in arrivals:
            match arrival.kind:
                case "keys":
                    self._send(parser.feed(arrival.text))
                case "paste":
                    self.process_message(events.Paste(arrival.text))
                case "answer":
                    self.process_message(TerminalSaid(arrival.command, arrival.text))

    def _send(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)


def _waiting(descriptor: int) -> int:
    """Return how many bytes were typed that nobody has read."""
    try:
        (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    except OSError:
        return 0
    return count


class _LastingFile:
    """Output that may be lost: the thread that writes must not end with the terminal, because others wait for it."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.fileno = file.fileno

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._file.flush()
