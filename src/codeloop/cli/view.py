"""What shows a turn while it runs, and what both formats share."""

from typing import Protocol

from codeloop.cli.outcome import Outcome
from codeloop.schema.event import Event


class View(Protocol):
    """Shows the events of one session; `finish` is called once, always."""

    def show(self, event: Event) -> None:
        """Show one event."""
        ...

    def note(self, text: str) -> None:
        """Tell the person something that is no part of the answer."""
        ...

    def finish(self, outcome: Outcome) -> None:
        """Show how it ended."""
        ...
