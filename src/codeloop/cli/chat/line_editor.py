"""One line that is edited at the foot of a terminal while other things are written above it."""

import asyncio
import codecs
import os
import re
import shutil
import signal
import sys
import termios
from collections import deque
from collections.abc import Callable
from typing import Any

from codeloop.cli.chat.input import Lines
from codeloop.cli.output.streams import ERASE, Output
from codeloop.cli.output.width import width_of
from codeloop.cli.questions.answerer import Terminal
from codeloop.kit.terminal_text import inert
from codeloop.schema.limits import EDITOR_ESCAPE, EDITOR_HISTORY

PROMPT = "> "
PASTES, NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"
KEY = re.compile(
    "\x1b\\[200~(?P<paste>.*?)\x1b\\[201~"
    "|\x1b\\[[0-9;?]*[ -/]*[@-~]|\x1bO.|\x1b[^\\[O]|[\x00-\x1f\x7f]|(?P<text>[^\x00-\x1f\x7f]+)",
    re.DOTALL,
)
UNFINISHED = re.compile("\x1b\\[200~(?!.*\x1b\\[201~).*\\Z|\x1b(\\[[0-9;?]*|O)?\\Z", re.DOTALL)


class Editor:
    """Edits one line: cursor keys, Home, End, history, ^A ^E ^B ^F ^U ^K ^W, pasted text as it is.

    While something runs, the line is shown when something is typed, and what is to be written waits until it is sent.
    """

    def __init__(self, out: Output) -> None:
        self.lines = Lines()
        self.terminal: Output | None = out
        self._out = out
        self._label = PROMPT
        self._text = ""
        self._cursor = 0
        self._history: list[str] = []
        self._back = 0
        self._draft = ""
        self._kept: tuple[str, int] | None = None
        self._is_quiet = False
        self._is_shown = False
        self._held: deque[Callable[[], object]] = deque()
        self._unread = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._before: list[Any] | None = None
        self._keys: dict[str, Callable[[], object]] = {
            **dict.fromkeys(("\n", "\r"), self._send),
            **dict.fromkeys(("\x7f", "\x08"), lambda: self._cut(self._cursor - 1, self._cursor)),
            **dict.fromkeys(("\x01", "\x1b[H", "\x1b[1~", "\x1bOH"), lambda: self._move(0)),
            **dict.fromkeys(("\x05", "\x1b[F", "\x1b[4~", "\x1bOF"), lambda: self._move(len(self._text))),
            **dict.fromkeys(("\x02", "\x1b[D", "\x1bOD"), lambda: self._move(self._cursor - 1)),
            **dict.fromkeys(("\x06", "\x1b[C", "\x1bOC"), lambda: self._move(self._cursor + 1)),
            **dict.fromkeys(("\x10", "\x1b[A", "\x1bOA"), lambda: self._recall(1)),
            **dict.fromkeys(("\x0e", "\x1b[B", "\x1bOB"), lambda: self._recall(-1)),
            "\x04": self._end_of_input,
            "\x0b": lambda: self._cut(self._cursor, len(self._text)),
            "\x15": lambda: self._cut(0, self._cursor),
            "\x17": lambda: self._cut(self._text.rstrip().rfind(" ", 0, self._cursor) + 1, self._cursor),
            "\x1b[3~": lambda: self._cut(self._cursor, self._cursor + 1),
        }

    def start(self) -> None:
        """Take the keys one by one from now on."""
        descriptor = sys.stdin.fileno()
        self._before = termios.tcgetattr(descriptor)
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, self._read, descriptor)
        loop.add_signal_handler(signal.SIGCONT, self._come_back)
        self._come_back()

    def stop(self) -> None:
        """Leave the terminal as it was found."""
        if self._before is None:
            return
        descriptor = sys.stdin.fileno()
        self._hide()
        while self._held:
            self._held.popleft()()
        self._out.write(NO_PASTES)
        loop = asyncio.get_running_loop()
        loop.remove_reader(descriptor)
        loop.remove_signal_handler(signal.SIGCONT)
        _set(descriptor, self._before)
        self._before = None

    def above(self, draw: Callable[[], object]) -> None:
        """Write above the line; while a line is typed and something runs, when it is sent."""
        if self._is_busy_typed() or self._held:
            self._held.append(draw)
            return
        self._hide()
        draw()
        self._show()

    def flash(self, draw: Callable[[], object]) -> None:
        """Write, unless the line is shown, or something waits for it to be sent."""
        if not self._is_shown and not self._held:
            draw()

    def rest(self, *, quiet: bool) -> None:
        """Show the line when nothing runs; hide an empty one when something does."""
        self._is_quiet = quiet
        self._hide()
        if not self._is_busy_typed():
            while self._held:
                self._held.popleft()()
        self._show()

    async def ask(self, terminal: Terminal, question: str) -> str | None:
        """Ask in the line's place; what was being typed comes back afterwards and is no answer."""
        del terminal
        self._hide()
        kept, self._text, self._cursor = (self._text, self._cursor), "", 0
        while self._held:
            self._held.popleft()()
        rows, line, label = question.rpartition("\n")
        self._out.write(rows + line)
        self._kept, self._label = kept, label
        self._show()
        try:
            return await self.lines.answer()
        finally:
            self._hide()
            self._label, self._kept = PROMPT, None
            self._text, self._cursor = kept
            self._show()

    def _is_busy_typed(self) -> bool:
        return bool(self._text) and not self._is_quiet and self._kept is None

    def _come_back(self) -> None:
        """Set the terminal up, at the beginning and when the program goes on after it was stopped."""
        descriptor = sys.stdin.fileno()
        mode = termios.tcgetattr(descriptor)
        mode[0] &= ~termios.ICRNL
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        _set(descriptor, mode)
        self._out.write(PASTES)
        self._is_shown = False
        self._show()

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, 65_536)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(descriptor)
            self.lines.put(None)
            return
        text = self._unread + self._decoder.decode(data)
        cut = UNFINISHED.search(text)
        self._unread = "" if cut is None else text[cut.start() :]
        if self._unread == "\x1b":  # the key, unless more of a sequence comes at once
            asyncio.get_running_loop().call_later(EDITOR_ESCAPE.seconds, self._forget_escape)
        for key in KEY.finditer(text[: len(text) - len(self._unread)]):
            pasted = key["paste"]
            if pasted is not None or key["text"]:
                self._insert(pasted.replace("\r\n", "\n").replace("\r", "\n") if pasted is not None else key["text"])
            elif (action := self._keys.get(key.group())) is not None:
                action()
        self._hide()
        if not self._text and not self._is_quiet:
            while self._held:
                self._held.popleft()()
        self._show()

    def _forget_escape(self) -> None:
        self._unread = self._unread if self._unread != "\x1b" else ""

    def _insert(self, text: str) -> None:
        if not self._is_shown and not self._out.is_at_start:
            self._out.write("\n")
        self._text = self._text[: self._cursor] + text + self._text[self._cursor :]
        self._cursor += len(text)

    def _move(self, to: int) -> None:
        self._cursor = min(max(to, 0), len(self._text))

    def _cut(self, start: int, end: int) -> None:
        start = max(start, 0)
        self._text = self._text[:start] + self._text[end:]
        self._cursor = start

    def _recall(self, step: int) -> None:
        if self._kept is not None or not 0 <= self._back + step <= len(self._history):
            return
        if self._back == 0:
            self._draft = self._text
        self._back += step
        self._text = self._history[-self._back] if self._back else self._draft
        self._cursor = len(self._text)

    def _send(self) -> None:
        text, self._text, self._cursor, self._back = self._text, "", 0, 0
        if self._kept is None and not text.strip():
            return
        self._hide()
        self._out.write(self._label + inert(text) + "\n")
        if self._kept is None and text not in self._history[-1:]:
            self._history = [*self._history, text][-EDITOR_HISTORY.value :]
        self.lines.put(text)

    def _end_of_input(self) -> None:
        if self._text:
            self._cut(self._cursor, self._cursor + 1)
        else:
            self.lines.put(None)

    def _hide(self) -> None:
        if self._is_shown:
            self._out.write(ERASE)
            self._is_shown = False

    def _show(self) -> None:
        if self._is_shown or not (self._is_quiet or self._text or self._kept is not None):
            return
        columns = shutil.get_terminal_size().columns
        label, room = self._label, columns - 1 - width_of(self._label)
        if room < columns // 3:  # a long question has its own line
            self._out.write(label.rstrip() + "\n")
            label = self._label = PROMPT
            room = columns - 1 - len(PROMPT)
        left = _window(self._text[: self._cursor], room, from_end=True)
        right = _window(self._text[self._cursor :], room - width_of(left), from_end=False)
        back = f"\x1b[{width_of(right)}D" if right else ""
        self._out.write(f"{ERASE}{label}{left}{right}{back}")
        self._is_shown = True


def _set(descriptor: int, mode: list[Any]) -> None:
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
    except termios.error:  # the terminal is gone
        return


def _window(text: str, room: int, *, from_end: bool) -> str:
    """Return as much of a text as there is room for, its end or its beginning, without what steers a terminal."""
    shown: list[str] = []
    for char in reversed(text) if from_end else text:
        cell = "⏎" if char == "\n" else " " if char == "\t" else inert(char)
        room -= width_of(cell)
        if room < 0:
            break
        shown.append(cell)
    return "".join(reversed(shown) if from_end else shown)
