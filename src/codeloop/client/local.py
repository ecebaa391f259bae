"""`LocalClient`: reaches one open project of this process."""

from collections.abc import AsyncIterator

from codeloop.app.dispatch import handle
from codeloop.app.project import Project
from codeloop.schema.event import StampedEvent
from codeloop.schema.operation import Gives, Operation, Takes


class LocalClient:
    """Calls the handlers of a project directly, and follows its store."""

    def __init__(self, project: Project) -> None:
        self.project = project

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused."""
        return await handle(self.project, operation, args)

    def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncIterator[StampedEvent]:
        """Return the stored events after the number `after` (None: from now on), then live events.

        `root`: leave out what other processes store for sessions other than this
        one and its subagents.
        """
        return self.project.store.follow(after, root=root)
