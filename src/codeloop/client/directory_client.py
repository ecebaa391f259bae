"""`DirectoryClient`: reaches the project of a directory in this process,
even after it was reopened.
"""

from collections.abc import AsyncIterator
from pathlib import Path

from codeloop.app.app import App
from codeloop.app.process_dispatch import carry_out
from codeloop.schema.event import StampedEvent
from codeloop.schema.operation import Gives, Operation, Takes


class DirectoryClient:
    """Calls the handlers of the project that is open in a directory.

    A change of the configuration reopens the project; the client then reaches the new one.
    """

    def __init__(self, app: App, directory: Path) -> None:
        self.app = app
        self.directory = directory

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused."""
        return await carry_out(self.app, operation, args, self.directory)

    async def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncIterator[StampedEvent]:
        """Yield the stored events after the number `after` (None: from now on), then live events.

        `root`: leave out what other processes store for sessions other than this
        one and its subagents.
        """
        stores = self.app.stores
        # Held open for as long as this follows: a project that is reopened would close it,
        # and events would be missed.
        store = stores.open((await self.app.get_project(self.directory)).store.path)
        try:
            async for event in store.follow(after, root=root):
                yield event
        finally:
            stores.release(store)
