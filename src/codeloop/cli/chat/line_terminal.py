"""`LineTerminal`: the terminal, or the pipes, of a conversation line by line. It prints above the prompt."""

from codeloop.cli.chat.typed_lines import TypedLines
from codeloop.cli.output.streams import OutputStream
from codeloop.cli.output.style import TextStyle, has_colour, paint
from codeloop.cli.output.text_view import TextView
from codeloop.cli.output.transcript import print_transcript
from codeloop.cli.output.view import ViewAbovePrompt
from codeloop.cli.questions.prompter import DrawCallback
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.message import Session

PROMPT_TEXT = "> "


class LineTerminal:
    """Shows answers and notes, with the prompt or a question below them; it is the prompter of a conversation.

    `is_attended`: a user sits at a terminal and can be asked. Then `answers` and `notes` are one output, because they
    share its last line.
    """

    def __init__(self, answers: OutputStream, notes: OutputStream, *, is_attended: bool, thinking: bool) -> None:
        self.lines = TypedLines(notes.end_prompt, joins_pastes=is_attended)
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
        self.write_above(lambda: self._notes.write(("" if self._notes.is_at_start else "\n") + painted_text + "\n"))

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
        """Write above the prompt or the question; what is not urgent waits until the question is answered."""
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
        """Queue a command that was typed in the place of an answer, so that it runs after the question."""
        self.lines.put(line)
        return True

    def _show_bottom(self) -> None:
        """Write the question or the prompt again, if something was written where it stood."""
        bottom = self._question or (PROMPT_TEXT if self._is_ready and self.is_attended else "")
        if bottom and not self._notes.has_prompt:
            self._notes.write_prompt(bottom)
