"""A request to an extension host that waits for its answer."""

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from codeloop.extend.host.extension import CallListener
from codeloop.extend.host.protocol import FetchChunk, FetchHead

ReceivePiece = Callable[[FetchHead | FetchChunk], None]
"""Gets the pieces of a response as they arrive."""


class PendingRequest(Struct):
    """A pending request. `about`: the name of its extension;
    `questions`: its questions that wait for the user.
    """

    answer: "asyncio.Future[Any]"
    about: str
    seconds: float = 0
    listener: CallListener | None = None
    receive_piece: ReceivePiece | None = None
    questions: "list[asyncio.Task[Any]]" = []
    deadline: asyncio.Timeout | None = None

    def reschedule(self) -> None:
        """Restart the deadline; while questions wait for the user there is none."""
        if self.deadline is not None and not self.deadline.expired():
            self.deadline.reschedule(
                None if self.questions else asyncio.get_running_loop().time() + self.seconds
            )
