"""A view on a plain terminal under which a question stays the last thing shown until it is answered."""

from collections.abc import Callable

from codeloop.cli.output.streams import ERASE, Output
from codeloop.cli.output.view import View
from codeloop.cli.questions.answerer import Terminal, ask_line
from codeloop.cli.run.result import Outcome
from codeloop.schema.event import Event, PartUpdated
from codeloop.schema.live_events import PartDelta
from codeloop.schema.part import ToolPart, ToolStateCompleted, ToolStateError


class Standing:
    """Shows what another view shows; while a question stands, results come above it and all else comes afterwards."""

    def __init__(self, view: View, out: Output) -> None:
        self._view = view
        self._out = out
        self._question = ""
        self._held: list[Event] = []

    @property
    def is_live(self) -> bool:
        """Whether `tick` shows something."""
        return self._view.is_live

    def tick(self) -> None:
        """Show what goes on at this moment, unless a question stands."""
        if not self._question:
            self._view.tick()

    def show_subagent(self, event: Event, title: str) -> None:
        """Show one event of a subagent's session."""
        if self._question and _is_result(event):
            self._above(lambda: self._view.show_subagent(event, title))
        else:
            self._view.show_subagent(event, title)

    def show(self, event: Event) -> None:
        """Show one event."""
        if not self._question:
            self._view.show(event)
        elif _is_result(event):
            self._above(lambda: self._view.show(event))
        elif isinstance(event, PartUpdated | PartDelta):
            self._held.append(event)
        else:
            self._view.show(event)

    def note(self, text: str) -> None:
        """Tell the person something that is no part of the answer."""
        self._above(lambda: self._view.note(text))

    def finish(self, outcome: Outcome) -> None:
        """Show how it ended."""
        self._view.finish(outcome)

    async def ask(self, terminal: Terminal, question: str) -> str | None:
        """Ask on the terminal; None at the end of input."""
        self._question = question
        try:
            return await ask_line(terminal, question)
        finally:
            self._question = ""
            while self._held:
                self._view.show(self._held.pop(0))

    def _above(self, draw: Callable[[], object]) -> None:
        question = self._question
        if question:
            self._out.write(ERASE)
        draw()
        if question:
            self._out.write(question)


def _is_result(event: Event) -> bool:
    if not isinstance(event, PartUpdated):
        return False
    part = event.properties.part
    return isinstance(part, ToolPart) and isinstance(part.state, ToolStateCompleted | ToolStateError)
