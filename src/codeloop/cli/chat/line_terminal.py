"""`LineTerminal`: the terminal, or the pipes, of a conversation line by line.
It prints above the prompt.
"""

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable

from codeloop.cli.output.streams import OutputStream
from codeloop.cli.output.style import TextStyle, has_colour, paint
from codeloop.cli.output.text_view import TextView
from codeloop.cli.output.transcript import print_transcript
from codeloop.cli.output.view import ViewAbovePrompt
from codeloop.cli.questions.prompter import DrawCallback
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.message import Session

# A line that comes within so many seconds after another one belongs to the same
# paste: nobody types so fast.
_PASTE_GAP = 0.005
# Seconds without input after which a paste is over: a paste over a network comes in pieces.
_PASTE_PAUSE = 0.2
# Bytes to read at once: the size of a pipe on Linux. A terminal hands over less.
_READ_BYTES = 65_536


class _TypedLines:
    """Reads stdin and keeps the lines that were not taken yet;
    None in the queue marks the end of the input.

    `on_enter`: called when a line arrives. `joins_pastes`: lines of one paste become one text.
    """

    def __init__(self, on_enter: Callable[[], object], *, joins_pastes: bool) -> None:
        self._on_enter = on_enter
        self._joins_pastes = joins_pastes
        self._waiting_lines: deque[str | None] = deque()
        self._line_arrived = asyncio.Event()
        self._answer: asyncio.Future[str | None] | None = None
        self._partial_line = b""
        # Lines of a paste that may not be complete yet.
        self._paste_lines: list[str] = []
        self._paste_timer: asyncio.TimerHandle | None = None
        self._stop_watching: Callable[[], object] = lambda: None

    def start_reading(self) -> None:
        """Start reading stdin."""
        # A process may be started without a stdin.
        if sys.stdin is None:
            self.put(None)
            return
        loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
        try:
            loop.add_reader(descriptor, self._read, descriptor)
            self._stop_watching = lambda: loop.remove_reader(descriptor)
        except OSError:
            # epoll refuses regular files, which are always ready: read them whole.
            while self._read(descriptor):
                pass

    def stop_reading(self) -> None:
        """Stop reading."""
        self._stop_watching()
        self._stop_watching = lambda: None

    def put(self, line: str | None) -> None:
        """Add a line: the answer to a waiting question, else one to take."""
        if (answer := self._open_answer) is not None:
            answer.set_result(line)
        else:
            self._waiting_lines.append(line)
            self._line_arrived.set()

    async def take_line(self) -> str | None:
        """Return the next line; None once the input has ended."""
        while not self._waiting_lines:
            self._line_arrived.clear()
            await self._line_arrived.wait()
        # The mark of the end stays, for every later call.
        return (
            self._waiting_lines[0]
            if self._waiting_lines[0] is None
            else self._waiting_lines.popleft()
        )

    async def take_answer(self) -> str | None:
        """Return the next line as an answer; None once the input has ended."""
        if self._waiting_lines and self._waiting_lines[-1] is None:
            return None
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None

    def drop_waiting(self) -> int:
        """Drop the lines that wait, and return how many they were; the end of the input stays."""
        count = len(self._paste_lines) + sum(line is not None for line in self._waiting_lines)
        self._waiting_lines = deque(line for line in self._waiting_lines if line is None)
        self._paste_lines = []
        return count

    def end_input(self) -> None:
        """Drop what waits and end the input; a question still waits for its answer."""
        self._waiting_lines.clear()
        self._waiting_lines.append(None)
        self._line_arrived.set()

    @property
    def _open_answer(self) -> asyncio.Future[str | None] | None:
        return None if self._answer is None or self._answer.done() else self._answer

    def _read(self, descriptor: int) -> bool:
        """Read the bytes that are there, and add their lines;
        return False at the end of the input.
        """
        try:
            data = os.read(descriptor, _READ_BYTES)
        except OSError:
            # The terminal is gone, which counts as the end of the input.
            data = b""
        *complete, self._partial_line = (self._partial_line + data).split(b"\n")
        # At the end, a last line without a newline counts as a line.
        for line in complete if data else filter(None, [*complete, self._partial_line]):
            self._on_enter()
            self._add(line.decode("utf-8", "replace").removesuffix("\r"))
        if not data:
            self._finish_paste()
            self.stop_reading()
            self.put(None)
        return bool(data)

    def _add(self, line: str) -> None:
        if not self._joins_pastes:
            self.put(line)
            return
        if self._paste_timer is not None:
            self._paste_timer.cancel()
        self._paste_lines.append(line)
        seconds = _PASTE_PAUSE if len(self._paste_lines) > 1 else _PASTE_GAP
        self._paste_timer = asyncio.get_running_loop().call_later(seconds, self._finish_paste)

    def _finish_paste(self) -> None:
        """Put the lines of the paste into the queue as one text."""
        lines, self._paste_lines = self._paste_lines, []
        # A question takes one line: the rest of a paste is not an answer.
        if lines and self._open_answer is not None:
            self.put(lines.pop(0))
        if lines:
            self.put("\n".join(lines))


PROMPT_TEXT = "> "


class LineTerminal:
    """Shows answers and notes, with the prompt or a question below them;
    it is the prompter of a conversation.

    `is_attended`: a user sits at a terminal and can be asked. Then `answers` and `notes` are one
    output, because they share its last line.
    """

    def __init__(
        self, answers: OutputStream, notes: OutputStream, *, is_attended: bool, thinking: bool
    ) -> None:
        self.lines = _TypedLines(notes.end_prompt, joins_pastes=is_attended)
        self.is_attended = is_attended
        self._answers = answers
        self._notes = notes
        self._thinking = thinking
        self._question = ""
        self._is_ready = False
        self._postponed_draws: list[DrawCallback] = []

    def make_view(self) -> ViewAbovePrompt:
        """Make the view that prints a session's events above the prompt."""
        return ViewAbovePrompt(TextView(self._answers, self._notes, thinking=self._thinking), self)

    def show_text(self, text: str, style: TextStyle = "dim") -> None:
        """Show lines above the prompt, with control characters escaped."""
        painted_text = paint(escape_controls(text), style, colour=has_colour(self._notes.stream))
        self.write_above(
            lambda: self._notes.write(
                ("" if self._notes.is_at_start else "\n") + painted_text + "\n"
            )
        )

    async def show_transcript(self, session: Session, messages: list[MessageWithParts]) -> None:
        """Show a session's last messages at a terminal."""
        if messages and self.is_attended:
            # The transcript is written by outputs of its own, so what waits here has to come first.
            await self._notes.drain()
            self.write_above(lambda: print_transcript(session, messages, thinking=self._thinking))

    def set_ready(self, *, is_ready: bool) -> None:
        """Show the prompt from now on, or do not: while a turn or a command runs there is none."""
        self._is_ready = is_ready
        self._show_bottom()

    def write_above(self, draw: DrawCallback, *, is_urgent: bool = True) -> None:
        """Write above the prompt or the question; what is not urgent waits until
        the question is answered.
        """
        if self._question and not is_urgent:
            self._postponed_draws.append(draw)
            return
        draw()
        self._show_bottom()

    def write_if_idle(self, draw: DrawCallback) -> None:
        """Write unless the user is typing."""
        if not self._notes.has_prompt:
            draw()

    async def ask(self, question: str) -> str | None:
        """Ask a question; None at the end of the input."""
        # Output that comes while the question stands there writes the question again below itself.
        self._question = question
        self._notes.write_prompt(question)
        try:
            return await self.lines.take_answer()
        finally:
            self._question = ""
            while self._postponed_draws:
                self._postponed_draws.pop(0)()

    def queue_command(self, line: str) -> bool:
        """Queue a command that was typed in the place of an answer,
        so that it runs after the question.
        """
        self.lines.put(line)
        return True

    def _show_bottom(self) -> None:
        """Write the question or the prompt again, if something was written where it stood."""
        bottom = self._question or (PROMPT_TEXT if self._is_ready and self.is_attended else "")
        if bottom and not self._notes.has_prompt:
            self._notes.write_prompt(bottom)
