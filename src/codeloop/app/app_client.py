"""A client for a directory that this process serves itself."""

from collections.abc import AsyncIterator
from pathlib import Path

from codeloop.app.app import App
from codeloop.app.process_dispatch import carry_out
from codeloop.schema.event import StampedEvent
from codeloop.schema.operation import Gives, Operation, Takes


class AppClient:
    """Calls the handlers of the directory's project.

    It outlives the project, which is reopened when its configuration changes.
    """

    def __init__(self, app: App, directory: Path) -> None:
        self.app = app
        self.directory = directory

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused."""
        return await carry_out(self.app, operation, args, self.directory)

    async def follow(self, after: int | None = None, root: str | None = None) -> AsyncIterator[StampedEvent]:
        """Return every stored event after `after` (None: from now on), then live ones.

        `root`: of what other processes store, only the events of this session, of its subagents and of no session.
        """
        stores = self.app.stores
        store = stores.open((await self.app.project(self.directory)).store.path)  # it stays while projects change
        try:
            async for event in store.follow(after, root=root):
                yield event
        finally:
            stores.release(store)
