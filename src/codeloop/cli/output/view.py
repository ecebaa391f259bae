"""What shows a turn while it runs, and what both formats share."""

from typing import Protocol

from codeloop.cli.run.result import Outcome
from codeloop.schema.event import Event


class View(Protocol):
    """Shows the events of one session; `finish` is called once, always."""

    @property
    def is_live(self) -> bool:
        """Whether `tick` shows something."""
        ...

    def show(self, event: Event) -> None:
        """Show one event."""
        ...

    def show_subagent(self, event: Event, title: str) -> None:
        """Show one event of a subagent's session; `title`: what it works on."""
        ...

    def tick(self) -> None:
        """Show what goes on at this moment, where that can be shown."""
        ...

    def note(self, text: str) -> None:
        """Tell the person something that is no part of the answer."""
        ...

    def finish(self, outcome: Outcome) -> None:
        """Show how it ended."""
        ...
