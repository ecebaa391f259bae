"""A request of version 2, whose handlers call the operations of version 1; its errors."""

from pathlib import Path

from msgspec import Struct

from codeloop.app.app import App
from codeloop.app.process_dispatch import carry_out
from codeloop.app.project import Project
from codeloop.schema.errors import CodeloopError
from codeloop.schema.message import Session
from codeloop.schema.operation import Gives, Operation, Takes
from codeloop.schema.wire import JSON, replace
from codeloop.server.version2.state import KeptState


class Request2(Struct, frozen=True):
    """A request of version 2: the app, the directory that the request names,
    and what the server keeps for this contract alone. `url`: how the client reaches the server.
    """

    app: App
    directory: Path
    state: KeptState
    url: str

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation of version 1. Raises CodeloopError."""
        return await carry_out(self.app, operation, args, self.directory)

    async def get_project(self, session_id: str | None = None) -> Project:
        """Return the project of the directory, or of a session. Raises CodeloopError."""
        if session_id is None:
            return await self.app.get_project(self.directory)
        return await self.app.find_session_project(session_id, self.directory)

    async def find_session(self, session_id: str) -> tuple[Project, Session]:
        """Return a session with its project. Raises CodeloopError: there is none."""
        project = await self.get_project(session_id)
        return project, project.store.get_session(session_id)

    async def at_session(self, session_id: str) -> "Request2":
        """Return the request for the directory of a session. Raises CodeloopError."""
        project, _ = await self.find_session(session_id)
        return self.at(str(project.settings.project_root.directory))

    def at(self, directory: str | None) -> "Request2":
        """Return the request for another directory. Raises CodeloopError."""
        return replace(self, directory=self.app.resolve_directory(directory)) if directory else self


class TaggedError(CodeloopError):
    """An error in the form of version 2: its tag, its HTTP status and further fields."""

    def __init__(self, tag: str, status: int, message: str, **data: str | int | JSON) -> None:
        super().__init__(message)
        self.tag = tag
        self.status = status
        self.data = data


def make_refusal(message: str) -> TaggedError:
    """Return the error for a request that this server does not support."""
    return TaggedError("InvalidRequestError", 400, message)


def make_not_found(what: str, name: str, **data: str) -> TaggedError:
    """Return the error for something (`Agent`, `Form`) that is not there."""
    return TaggedError(f"{what}NotFoundError", 404, f"{what} not found: {name}", **data)
