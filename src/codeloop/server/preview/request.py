"""A request of the preview, whose handlers call the operations of version 1."""

from pathlib import Path

from msgspec import Struct

from codeloop.app.app import App
from codeloop.app.process_dispatch import carry_out
from codeloop.app.project import Project
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import Gives, Operation, Takes


class PreviewRequest(Struct, frozen=True):
    """A request of the preview: the app, and the directory that the request names."""

    app: App
    directory: Path

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation of version 1. Raises CodeloopError."""
        return await carry_out(self.app, operation, args, self.directory)

    async def get_project(self, session_id: str | None = None) -> Project:
        """Return the project of the directory, or of a session. Raises CodeloopError."""
        if session_id is None:
            return await self.app.get_project(self.directory)
        return await self.app.find_session_project(session_id, self.directory)


class PreviewRefused(CodeloopError):
    """An error in the form of version 2: its tag,
    its HTTP status and further fields of the body.
    """

    def __init__(self, tag: str, status: int, message: str, **data: str) -> None:
        super().__init__(message)
        self.tag = tag
        self.status = status
        self.data = data


def make_refusal(message: str) -> PreviewRefused:
    """Return the error for an operation of version 2 that this server does not support."""
    return PreviewRefused("InvalidRequestError", 400, message)
