"""The Textual driver of the UI: it restores the terminal however the program ends,
even when it is killed.
"""

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Iterable
from contextlib import suppress
from queue import Full
from typing import Any

from textual import constants
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from codeloop.tui.terminal.bounded_writer import BoundedWriter
from codeloop.tui.terminal.input.input_parser import InputParser, TerminalInput
from codeloop.tui.terminal.input.input_queue import InputQueue
from codeloop.tui.terminal.input.paste_detector import PasteDetector
from codeloop.tui.terminal.sequences import (
    DEFAULT_CURSOR,
    MODIFIED_KEYS,
    PLAIN_KEYS,
    PLAIN_LETTERS,
    PLAIN_TERMINALS,
    RESTORE_TITLE,
    SAVE_TITLE,
    needs_visible_cursor,
)
from codeloop.tui.terminal.terminal_app import TerminalApp
from codeloop.tui.terminal.textual_private import use_writer

_RESTORE_SEQUENCES = (
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
    3: {
        "echo": termios.ECHO,
        "icanon": termios.ICANON,
        "iexten": termios.IEXTEN,
        "isig": termios.ISIG,
    },
    0: {
        "ixon": termios.IXON,
        "ixoff": termios.IXOFF,
        "icrnl": termios.ICRNL,
        "inlcr": termios.INLCR,
        "igncr": termios.IGNCR,
    },
}
"""The terminal attributes that the UI changes, by their names for `stty`: the local flags (index 3
of what `termios.tcgetattr` returns) and the input flags (index 0).
"""

# The last line that the script reads says whether the UI has the terminal. If it has, the terminal
# is restored when this process ends; but attributes that a shell has set since are kept.
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


class _TerminalWatcher:
    """Watches this process from another session,
    which signals to this process's group do not reach.
    """

    def __init__(self, terminal: int, attributes: list[Any]) -> None:
        """Start the watcher, if there is `/bin/sh`. `attributes`: those that the
        terminal had before the UI.
        """
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
                    _RESTORE_SEQUENCES + DEFAULT_CURSOR * needs_visible_cursor(os.environ),
                    *settings,
                ],
                stdin=subprocess.PIPE,
                stdout=terminal,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                bufsize=0,
                # It must not keep the project's file system busy.
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath), "PWD": "/"},
            )

    def set_on(self, is_on: bool) -> None:
        """Set whether the UI has the terminal: only then the watcher restores it."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(b"on\n" if is_on else b"off\n")


BACKGROUND_QUERY = "\x1b]11;?\x1b\\"
"""The sequence that queries the background colour."""
BACKGROUND_NUMBER = "11"
"""The number of that query, with which its answer begins."""
READ_SIZE = 1 << 16
"""Bytes that are read at a time, enough for large pastes."""
ESCAPE_TIMEOUT = 1.2 * constants.ESCAPE_DELAY
"""Seconds without input after which an escape is the key of that name,
not the start of a sequence.
"""
_STALL_CHECK_INTERVAL = 0.1
"""Seconds between two checks whether a stalled terminal reads again."""


_FOREGROUND_CHECK_INTERVAL = 0.2
"""Seconds between two checks whether a shell has brought this process to the foreground."""


class TerminalClosed(Message):
    """The terminal was closed."""


class TerminalAnswered(Message):
    """The terminal answered a query; `query`: its name, as in `TerminalInput`."""

    def __init__(self, query: str, text: str) -> None:
        super().__init__()
        self.query = query
        self.text = text


class TerminalDriver(LinuxDriver):
    """Textual's driver, with a watcher process that restores the terminal if this process can't.

    Its input thread sleeps until there is input, and ends when the terminal is closed. A stalled
    terminal, which reads no output, blocks neither turns nor signals: it is
    redrawn once it reads again.
    """

    _watcher: _TerminalWatcher | None = None
    _wake_pipe: tuple[int, int] | None = None
    """A pipe that wakes the input thread, to stop it."""
    _is_behind = False
    """Whether the process was stopped and continued in the background without
    restoring the terminal before.
    """
    is_stalled = False
    """Whether the terminal does not read what is written."""

    def start_application_mode(self) -> None:
        """Set up the terminal for the UI, at the start and after a suspension,
        once this process may use it.
        """
        # The terminal stops a process in the background that changes its modes (after `bg`,
        # or `codeloop &`).
        if not self._is_in_foreground:
            self._must_signal_resume = True
            self._loop.call_later(_FOREGROUND_CHECK_INTERVAL, self.start_application_mode)
            return
        self._is_behind = False
        use_writer(BoundedWriter)
        self.is_stalled = False
        self._wake_pipe = self._wake_pipe or os.pipe()
        super().start_application_mode()
        if os.environ.get("TERM") not in PLAIN_TERMINALS:
            self.write(MODIFIED_KEYS + PLAIN_LETTERS + BACKGROUND_QUERY + SAVE_TITLE)
        if self.attrs_before is not None:
            self._watcher = self._watcher or _TerminalWatcher(self.fileno, self.attrs_before)
            self._watcher.set_on(True)

    def stop_application_mode(self) -> None:
        """Restore the terminal, at the end and before a suspension;
        nothing is done if the UI does not have it.
        """
        if self._writer_thread is None:
            return
        if isinstance(self._app, TerminalApp):
            self.write(self._app.exit_sequence)
        if os.environ.get("TERM") not in PLAIN_TERMINALS:
            self.write(
                PLAIN_KEYS + DEFAULT_CURSOR * needs_visible_cursor(os.environ) + RESTORE_TITLE
            )
        super().stop_application_mode()

    def write(self, data: str) -> None:
        """Write to the terminal, unless another program has it, or it is stalled."""
        if self._writer_thread is None or self.is_stalled or self._is_behind:
            return
        try:
            self._writer_thread.write(data)
        except Full:
            self.is_stalled = True
            self._loop.call_later(_STALL_CHECK_INTERVAL, self._check_stall)

    @property
    def is_writing(self) -> bool:
        """Whether the terminal has not yet taken all that was written."""
        return isinstance(self._writer_thread, BoundedWriter) and not self._writer_thread.is_idle

    def _check_stall(self) -> None:
        """Redraw everything once the terminal reads again."""
        if not isinstance(self._writer_thread, BoundedWriter):
            return
        if self._writer_thread.is_idle:
            self.is_stalled = False
            if isinstance(self._app, TerminalApp):
                self._app.redraw()
        else:
            self._loop.call_later(_STALL_CHECK_INTERVAL, self._check_stall)

    @property
    def _is_in_foreground(self) -> bool:
        """Whether this process may use the terminal: a shell has not put it into the background."""
        try:
            return os.tcgetpgrp(self.fileno) == os.getpgrp()
        except OSError:
            # It is not a terminal that has a foreground.
            return True

    def disable_input(self) -> None:
        """Stop the input thread."""
        if self._wake_pipe is None:
            return
        # Textual's method waits for the thread to end.
        os.write(self._wake_pipe[1], b"\0")
        super().disable_input()
        for descriptor in self._wake_pipe:
            os.close(descriptor)
        self._wake_pipe = None

    def close(self) -> None:
        """Write the remaining output. If the terminal is stalled,
        the watcher restores it once it reads again.
        """
        super().close()
        # A writer that still lives holds output that the terminal does not read.
        self.is_stalled |= self._writer_thread is not None and self._writer_thread.is_alive()
        self._writer_thread = None
        if self._watcher is not None and not self.is_stalled:
            self._watcher.set_on(False)

    def _sigtstp_application(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._suspend)

    def _sigcont_application(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._resume)

    def _suspend(self) -> None:
        """Suspend this process as shells do: with its process group,
        and only if a shell can continue it.
        """
        has_terminal = self._writer_thread is not None
        if has_terminal:
            self.suspend_application_mode()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
        signal.signal(signal.SIGCONT, signal.SIG_IGN)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # 0: the whole group. Without the terminal, the group's other processes got the signal
        # from the terminal itself.
        os.kill(0 if has_terminal else os.getpid(), signal.SIGTSTP)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if has_terminal:
            self._must_signal_resume = True
            self.resume_application_mode()

    def _resume(self) -> None:
        """Set up the terminal again after a suspension that was not noticed,
        since a shell has used it meanwhile.
        """
        if self._writer_thread is None:
            return
        self._is_behind = not self._is_in_foreground
        if self._is_behind:
            self._loop.call_later(_FOREGROUND_CHECK_INTERVAL, self._resume)
        else:
            self.suspend_application_mode()
            self._must_signal_resume = True
            self.resume_application_mode()

    def run_input_thread(self) -> None:
        """Read input until the UI leaves the terminal, or the terminal is closed."""
        if self._wake_pipe is None or not isinstance(self._app, TerminalApp):
            return
        wake_descriptor, decode = (
            self._wake_pipe[0],
            getincrementaldecoder("utf-8")(errors="replace").decode,
        )
        parser, detector = InputParser(), PasteDetector()
        queue = InputQueue(self._app, self._loop, self.process_message)
        # Bytes that were typed before the terminal was in the UI's mode;
        # it translated Enter to a line feed in them.
        early_count = _count_unread(self.fileno)
        # Seconds; None: until there is input.
        wait: float | None = None
        last_input_at = 0.0
        while True:
            readable, _, _ = select.select([self.fileno, wake_descriptor], [], [], wait)
            now = time.monotonic()
            if wake_descriptor in readable:
                return
            if not readable:
                # A sequence would have continued by now, so that a lone escape is a key.
                has_paused = now - last_input_at >= ESCAPE_TIMEOUT
                if has_paused:
                    self._dispatch(detector.detect(parser.flush(), now), queue)
                    queue.flush()
                if detector.compute_wait(now) == 0:
                    self._dispatch(detector.flush(), queue)
                hold_time = detector.compute_wait(now)
                # Without a limit once nothing is held: an idle UI takes no CPU.
                wait = min(hold_time or ESCAPE_TIMEOUT, ESCAPE_TIMEOUT)
                if has_paused and parser.is_idle and hold_time is None:
                    wait = None
                continue
            # A closed terminal reads as empty, or raises an error.
            data = b""
            with suppress(OSError):
                data = os.read(self.fileno, READ_SIZE)
            if not data:
                self.send_message(TerminalClosed())
                return
            if early_count:
                data = data[:early_count].replace(b"\n", b"\r") + data[early_count:]
                early_count = max(early_count - len(data), 0)
            last_input_at = now
            self._dispatch(detector.detect(parser.parse(decode(data)), now), queue)
            wait = min(detector.compute_wait(now) or ESCAPE_TIMEOUT, ESCAPE_TIMEOUT)

    def send_message(self, message: Message) -> None:
        """Send a message to the app."""
        if threading.current_thread() is threading.main_thread():
            self._app.post_message(message)
        else:
            super().send_message(message)

    def _dispatch(self, inputs: Iterable[TerminalInput], queue: InputQueue) -> None:
        for item in inputs:
            if item.kind == "answer":
                self.process_message(TerminalAnswered(item.query, item.text))
            else:
                queue.put(item)


def _count_unread(descriptor: int) -> int:
    """Return how many bytes of input are unread."""
    try:
        (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    except OSError:
        return 0
    return count
