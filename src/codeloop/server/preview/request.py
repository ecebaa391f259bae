"""A request of the preview, whose handlers call the operations of version 1."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from codeloop.app.app import App
from codeloop.app.process_dispatch import carry_out
from codeloop.app.project import Project
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import Gives, Operation, Takes
from codeloop.schema.wire import Wire

Handler = Callable[["PreviewRequest", Any], Awaitable[Any]]
Arguments = TypeVar("Arguments", bound=Wire)


class PreviewRequest(Struct, frozen=True):
    """A request of the preview: the app, and the directory that the request names."""

    app: App
    directory: Path

    async def call(self, op: Operation[Takes, Gives], args: Takes) -> Gives:
        """Carry out an operation of version 1. Raises CodeloopError."""
        return await carry_out(self.app, op, args, self.directory)

    async def project(self, session_id: str | None = None) -> Project:
        """Return the project of the directory, or of a session. Raises CodeloopError."""
        if session_id is None:
            return await self.app.get_project(self.directory)
        return await self.app.find_session_project(session_id, self.directory)


class PreviewRefused(CodeloopError):
    """An error in the form of version 2: its tag, its HTTP status and further fields of the body."""

    def __init__(self, tag: str, status: int, message: str, **data: str) -> None:
        super().__init__(message)
        self.tag = tag
        self.status = status
        self.data = data


def make_answers_decorator(table: dict[str, Handler]) -> Callable[[str], Callable[[Handler], Handler]]:
    """Return a decorator factory: `answers(id)` enters a function in the table as the handler of that operation."""

    def answers(name: str) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            table[name] = handler
            return handler

        return add

    return answers


def make_refusal(message: str) -> PreviewRefused:
    """Return the error for an operation of version 2 that this server does not support."""
    return PreviewRefused("InvalidRequestError", 400, message)
