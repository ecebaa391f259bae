"""The client of a project in the same process."""

from collections.abc import AsyncIterator

from codeloop.app.dispatch import handle
from codeloop.app.project import Project
from codeloop.schema.event import StampedEvent
from codeloop.schema.operation import Gives, Operation, Takes


class LocalClient:
    """Calls the handlers directly and follows the store."""

    def __init__(self, project: Project) -> None:
        self.project = project

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation. Raises CodeloopError when it is refused."""
        return await handle(self.project, operation, args)

    def follow(self, after: int | None = None, root: str | None = None) -> AsyncIterator[StampedEvent]:
        """Return every stored event after `after` (None: from now on), then live ones.

        `root`: of what other processes store, only the events of this session, of its subagents and of no session.
        """
        return self.project.store.follow(after, root=root)
