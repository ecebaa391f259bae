"""What every client can do: two methods, so that two implementations can't drift apart."""

from collections.abc import AsyncIterator
from typing import Protocol

from codeloop.schema.event import Stamped
from codeloop.schema.operation import Gives, Operation, Takes


class Client(Protocol):
    """A way to reach a project: in this process, or over HTTP."""

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused."""
        ...

    def follow(self, after: int | None = None) -> AsyncIterator[Stamped]:
        """Return every stored event after `after` (None: from now on), then live ones."""
        ...
