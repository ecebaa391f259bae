"""One line that is edited at the bottom of a terminal while other things are written above it."""

import asyncio
import codecs
import os
import re
import shutil
import signal
import sys
import termios
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from codeloop.cli.chat.input import Lines
from codeloop.cli.output.streams import ERASE, Output
from codeloop.cli.questions.prompter import Draw
from codeloop.client.display.numbers import width_of
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


class EditedText:
    """A text and a cursor in it."""

    def __init__(self, text: str = "", cursor: int = 0) -> None:
        self.text = text
        self.cursor = cursor

    def insert(self, text: str) -> None:
        """Insert at the cursor."""
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def move(self, to: int) -> None:
        """Move the cursor."""
        self.cursor = min(max(to, 0), len(self.text))

    def cut(self, start: int, end: int) -> None:
        """Delete what is between two places."""
        self.cursor = max(start, 0)
        self.text = self.text[: self.cursor] + self.text[end:]

    def cut_word(self) -> None:
        """Delete the word before the cursor."""
        self.cut(self.text.rstrip().rfind(" ", 0, self.cursor) + 1, self.cursor)

    def window(self, room: int) -> tuple[str, str]:
        """Return as much of the text before and after the cursor as there is room for."""
        left = _window(self.text[: self.cursor], room, from_end=True)
        return left, _window(self.text[self.cursor :], room - width_of(left), from_end=False)


class History:
    """The lines that were sent, and the one that is typed while they are looked through."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._back = 0
        self._draft = ""

    def add(self, line: str) -> None:
        """Keep a line, unless it repeats the last one."""
        self._back = 0
        if line not in self._lines[-1:]:
            self._lines = [*self._lines, line][-EDITOR_HISTORY.value :]

    def recall(self, step: int, typed: str) -> str:
        """Return the line `step` further back; `typed` is returned to in the end."""
        if not 0 <= self._back + step <= len(self._lines):
            return typed
        if self._back == 0:
            self._draft = typed
        self._back += step
        return self._lines[-self._back] if self._back else self._draft


class KeyReader:
    """Splits bytes of a terminal into keys, which may come in pieces."""

    def __init__(self) -> None:
        self._unread = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def keys(self, data: bytes) -> Iterator[re.Match[str]]:
        """Return the complete keys."""
        text = self._unread + self._decoder.decode(data)
        cut = UNFINISHED.search(text)
        self._unread = "" if cut is None else text[cut.start() :]
        if self._unread == "\x1b":  # the key, unless more of a sequence comes at once
            asyncio.get_running_loop().call_later(EDITOR_ESCAPE.seconds, self._forget_escape)
        return KEY.finditer(text[: len(text) - len(self._unread)])

    def _forget_escape(self) -> None:
        self._unread = self._unread if self._unread != "\x1b" else ""


class Editor:
    """Edits one line: cursor keys, Home, End, history, ^A ^E ^B ^F ^U ^K ^W, pasted text as it is.

    During a turn the line is shown once something is typed, and output waits until it is sent.
    """

    def __init__(self, out: Output) -> None:
        self.lines = Lines()
        self.terminal = out
        self._label = PROMPT
        self._line = EditedText()
        self._kept: EditedText | None = None
        """What was being typed when a question came."""
        self._history = History()
        self._reader = KeyReader()
        self._is_quiet = False
        self._is_shown = False
        self._held: deque[Draw] = deque()
        self._mode: list[Any] | None = None
        """The terminal's mode as it was found."""
        self._actions: dict[str, Callable[[], object]] = {
            **dict.fromkeys(("\n", "\r"), self._send),
            **dict.fromkeys(("\x7f", "\x08"), lambda: self._line.cut(self._line.cursor - 1, self._line.cursor)),
            **dict.fromkeys(("\x01", "\x1b[H", "\x1b[1~", "\x1bOH"), lambda: self._line.move(0)),
            **dict.fromkeys(("\x05", "\x1b[F", "\x1b[4~", "\x1bOF"), lambda: self._line.move(len(self._line.text))),
            **dict.fromkeys(("\x02", "\x1b[D", "\x1bOD"), lambda: self._line.move(self._line.cursor - 1)),
            **dict.fromkeys(("\x06", "\x1b[C", "\x1bOC"), lambda: self._line.move(self._line.cursor + 1)),
            **dict.fromkeys(("\x10", "\x1b[A", "\x1bOA"), lambda: self._recall(1)),
            **dict.fromkeys(("\x0e", "\x1b[B", "\x1bOB"), lambda: self._recall(-1)),
            "\x04": self._end_of_input,
            "\x0b": lambda: self._line.cut(self._line.cursor, len(self._line.text)),
            "\x15": lambda: self._line.cut(0, self._line.cursor),
            "\x17": lambda: self._line.cut_word(),
            "\x1b[3~": lambda: self._line.cut(self._line.cursor, self._line.cursor + 1),
        }

    def start(self) -> None:
        """Read single keys from now on."""
        descriptor = sys.stdin.fileno()
        self._mode = termios.tcgetattr(descriptor)
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, self._read, descriptor)
        loop.add_signal_handler(signal.SIGCONT, self._set_up)
        self._set_up()

    def stop(self) -> None:
        """Leave the terminal as it was found."""
        if self._mode is None:
            return
        descriptor = sys.stdin.fileno()
        self._hide()
        self._flush()
        self.terminal.write(NO_PASTES)
        loop = asyncio.get_running_loop()
        loop.remove_reader(descriptor)
        loop.remove_signal_handler(signal.SIGCONT)
        _set(descriptor, self._mode)
        self._mode = None

    def above(self, draw: Draw, *, urgent: bool = True) -> None:
        """Write above the line; if a line is typed during a turn, once it is sent."""
        del urgent
        if self._is_typed_during_turn() or self._held:
            self._held.append(draw)
            return
        self._hide()
        draw()
        self._show()

    def flash(self, draw: Draw) -> None:
        """Write unless the line is shown or output waits for it."""
        if not self._is_shown and not self._held:
            draw()

    def rest(self, *, quiet: bool) -> None:
        """Show the line if nothing runs; hide an empty one if something does."""
        self._is_quiet = quiet
        self._hide()
        if not self._is_typed_during_turn():
            self._flush()
        self._show()

    async def ask(self, question: str) -> str | None:
        """Ask in place of the line; what was being typed comes back afterwards."""
        self._hide()
        kept, self._line = self._line, EditedText()
        self._flush()
        rows, line, label = question.rpartition("\n")
        self.terminal.write(rows + line)
        self._kept, self._label = kept, label
        self._show()
        try:
            return await self.lines.answer()
        finally:
            self._hide()
            self._label, self._kept, self._line = PROMPT, None, kept
            self._show()

    def _is_typed_during_turn(self) -> bool:
        return bool(self._line.text) and not self._is_quiet and self._kept is None

    def _flush(self) -> None:
        while self._held:
            self._held.popleft()()

    def _set_up(self) -> None:
        """Set the terminal's mode, at the start and when the program continues after it was suspended."""
        descriptor = sys.stdin.fileno()
        mode = termios.tcgetattr(descriptor)
        mode[0] &= ~termios.ICRNL
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        _set(descriptor, mode)
        self.terminal.write(PASTES)
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
        for key in self._reader.keys(data):
            if key["paste"] is not None:
                self._insert(key["paste"].replace("\r\n", "\n").replace("\r", "\n"))
            elif key["text"]:
                self._insert(key["text"])
            elif (action := self._actions.get(key.group())) is not None:
                action()
        self._hide()
        if not self._line.text and not self._is_quiet:
            self._flush()
        self._show()

    def _insert(self, text: str) -> None:
        if not self._is_shown and not self.terminal.is_at_start:
            self.terminal.write("\n")
        self._line.insert(text)

    def _recall(self, step: int) -> None:
        if self._kept is None:
            text = self._history.recall(step, self._line.text)
            self._line = EditedText(text, len(text))

    def _send(self) -> None:
        text, self._line = self._line.text, EditedText()
        if self._kept is None and not text.strip():
            return
        self._hide()
        self.terminal.write(self._label + inert(text) + "\n")
        if self._kept is None:
            self._history.add(text)
        self.lines.put(text)

    def _end_of_input(self) -> None:
        if self._line.text:
            self._line.cut(self._line.cursor, self._line.cursor + 1)
        else:
            self.lines.put(None)

    def _hide(self) -> None:
        if self._is_shown:
            self.terminal.write(ERASE)
            self._is_shown = False

    def _show(self) -> None:
        if self._is_shown or not (self._is_quiet or self._line.text or self._kept is not None):
            return
        columns = shutil.get_terminal_size().columns
        label, room = self._label, columns - 1 - width_of(self._label)
        if room < columns // 3:  # a long question has its own line
            self.terminal.write(label.rstrip() + "\n")
            label = self._label = PROMPT
            room = columns - 1 - len(PROMPT)
        left, right = self._line.window(room)
        back = f"\x1b[{width_of(right)}D" if right else ""
        self.terminal.write(f"{ERASE}{label}{left}{right}{back}")
        self._is_shown = True


def _set(descriptor: int, mode: list[Any]) -> None:
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
    except termios.error:  # the terminal is gone
        return


def _window(text: str, room: int, *, from_end: bool) -> str:
    """Return the end or the beginning of a text, as much as there is room for, with control characters made visible."""
    shown: list[str] = []
    for char in reversed(text) if from_end else text:
        cell = "⏎" if char == "\n" else " " if char == "\t" else inert(char)
        room -= width_of(cell)
        if room < 0:
            break
        shown.append(cell)
    return "".join(reversed(shown) if from_end else shown)
