"""The Client protocol: two methods, so that its implementations can't drift apart."""

from collections.abc import AsyncIterator
from typing import Protocol

from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.event import StampedEvent
from codeloop.schema.operation import SESSION_GET, Gives, Operation, Takes


class Client(Protocol):
    """A way to reach a project: in this process, or over HTTP."""

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused."""
        ...

    def follow(self, after: int | None = None, root: str | None = None) -> AsyncIterator[StampedEvent]:
        """Return every stored event after `after` (None: from now on), then live ones.

        `root`: the caller needs only the events of this session and of its subagents; others may come all the same.
        """
        ...


async def works_for(client: Client, session_id: str, main: str) -> bool:
    """Return whether a session is `main` or one of its subagents, or of theirs. Raises OperationError."""
    while session_id != main:
        session = await client.call(SESSION_GET, SessionId(session_id=session_id))
        if session.parent_id is None:
            return False
        session_id = session.parent_id
    return True
