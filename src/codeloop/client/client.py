"""What every client can do: two methods, so that two implementations can't drift apart."""

from collections.abc import AsyncIterator
from typing import Any, Protocol

from codeloop.schema.event import Stamped
from codeloop.schema.operation import Operation


class Client(Protocol):
    """A way to reach a project: in this process, or over HTTP."""

    async def call(self, operation: Operation, **args: Any) -> Any:
        """Carry out an operation; `args` are the fields of its `takes`. Raises CodeloopError when it is refused."""
        ...

    def follow(self, after: int | None = None) -> AsyncIterator[Stamped]:
        """Give every stored event after `after` (None: from now on), then live ones."""
        ...
