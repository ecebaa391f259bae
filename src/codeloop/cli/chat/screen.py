"""What a conversation shows: answers, notes, and the sessions it enters, above the line that is typed."""

from codeloop.cli.chat.input import Plain
from codeloop.cli.output.streams import Output
from codeloop.cli.output.style import Look, has_colour, paint
from codeloop.cli.output.text import TextView
from codeloop.cli.output.transcript import transcript
from codeloop.cli.output.view import ViewAbove
from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.message import Session


class Screen:
    """A terminal or pipes. `is_attended`: a person sits at a terminal and can be asked."""

    def __init__(self, answers: Output, notes: Output, typing: Plain, *, thinking: bool) -> None:
        self.typing = typing
        self.is_attended = typing.terminal is not None
        self._answers = answers
        self._notes = notes
        self._thinking = thinking

    def view(self) -> ViewAbove:
        """Make the view that prints a session's events above the prompt."""
        return ViewAbove(TextView(self._answers, self._notes, thinking=self._thinking), self.typing)

    def say(self, text: str, look: Look = "dim") -> None:
        """Show lines, with nothing in them that could control the terminal."""
        text_painted = paint(escape_controls(text), look, colour=has_colour(self._notes.stream))
        self.typing.above(lambda: self._notes.write(("" if self._notes.is_at_start else "\n") + text_painted + "\n"))

    def write(self, text: str) -> None:
        """Show lines after the input has stopped."""
        self._notes.write(escape_controls(text))

    async def show_transcript(self, session: Session, messages: list[MessageWithParts]) -> None:
        """Show a session's last messages at a terminal."""
        if messages and self.typing.terminal is not None:
            await self.typing.terminal.drain()
            self.typing.above(lambda: transcript(session, messages, thinking=self._thinking))
