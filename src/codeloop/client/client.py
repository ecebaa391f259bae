"""`Client`: the protocol by which user interfaces reach a project,
in this process or on a server.
"""

from collections.abc import AsyncIterator
from typing import Protocol

from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import StampedEvent
from codeloop.schema.operation import Gives, Operation, Takes


class ServerLost(CodeloopError):
    """The server can't be reached, or the connection broke.

    `why`: the cause, to be quoted in a sentence.
    `is_unsent`: the server can't have seen the request.
    """

    def __init__(self, message: str, why: str, *, is_unsent: bool = False) -> None:
        super().__init__(message)
        self.why = why
        self.is_unsent = is_unsent


class Client(Protocol):
    """A way to reach a project: in this process, or over HTTP."""

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused."""
        ...

    def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncIterator[StampedEvent]:
        """Return the stored events after the number `after` (None: from now on), then live events.

        `root`: a session, if the caller needs its events and those of its subagents only.
        Others may come as well.
        """
        ...


async def belongs_to(client: Client, session_id: str, root_id: str) -> bool:
    """Return whether a session is `root_id`, or a subagent below it at any depth.
    Raises OperationError.
    """
    while session_id != root_id:
        session = await client.call(SESSION_GET, SessionId(session_id=session_id))
        if session.parent_id is None:
            return False
        session_id = session.parent_id
    return True
