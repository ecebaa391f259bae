"""What shows a turn while it runs, and what both formats share."""

import os
import sys
from io import StringIO
from typing import Protocol, TextIO

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


class Output:
    """A stream that may be closed by its reader, or full: `closed` tells, and nothing is raised."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.closed = False

    def write(self, text: str) -> None:
        """Write and flush."""
        if self.closed:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            self.closed = True
            # What is still buffered would fail again when the interpreter exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())


class Nowhere(StringIO):
    """Stands for a stream that the process was started without."""

    def write(self, s: str, /) -> int:
        """Drop the text."""
        return len(s)


def standard() -> tuple[Output, Output]:
    """Give stdout and stderr; characters that their encoding lacks are replaced."""
    return _output(sys.stdout), _output(sys.stderr)


def _output(stream: TextIO | None) -> Output:
    if stream is None:
        return Output(Nowhere())
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
    return Output(stream)
