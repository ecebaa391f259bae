"""What is written to the terminal of a conversation, above the line that is typed."""

from codeloop.cli.chat.input import Typing
from codeloop.cli.output.streams import Output
from codeloop.cli.output.view import View
from codeloop.cli.run.result import Outcome
from codeloop.schema.event import Event


class Above:
    """A view, and a terminal to ask on, that leave the line alone that is typed."""

    def __init__(self, view: View, out: Output, typing: Typing) -> None:
        self._view = view
        self._out = out
        self._typing = typing

    @property
    def is_live(self) -> bool:
        """Whether `tick` shows something."""
        return self._view.is_live

    def show_subagent(self, event: Event, title: str) -> None:
        """Show one event of a subagent."""
        self._typing.above(lambda: self._view.show_subagent(event, title))

    def tick(self) -> None:
        """Show what goes on, unless a line is being typed."""
        self._typing.flash(self._view.tick)

    def show(self, event: Event) -> None:
        """Show one event."""
        self._typing.above(lambda: self._view.show(event))

    def note(self, text: str) -> None:
        """Tell the person something that is no part of the answer."""
        self._typing.above(lambda: self._view.note(text))

    def finish(self, outcome: Outcome) -> None:
        """Show the sums of a turn."""
        self._typing.above(lambda: self._view.finish(outcome))

    def write(self, text: str) -> None:
        """Write lines."""
        self._typing.above(lambda: self._out.write(text))

    async def drain(self) -> None:
        """Wait until all of it is written."""
        await self._out.drain()
