"""A client that answers from a file: the screens of the UI over a project
that is always the same.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.schema.api.session_inputs import FilePartInput, MessageWithParts
from codeloop.schema.api.session_messages import SESSION_MESSAGES
from codeloop.schema.api.session_requests import SESSION_CREATE, SESSION_GET
from codeloop.schema.errors import OperationError
from codeloop.schema.event import Event, StampedEvent
from codeloop.schema.message import Session
from codeloop.schema.operation import Gives, Operation, Takes
from codeloop.tui.app import TerminalUI
from codeloop.tui.settings.ui_launch import AskTrust, UiLaunch
from codeloop.tui.start import create_ui

FILE = Path(__file__).with_name("project.json")
PLACE = "/home/ada/shop"


class StoredClient:
    """Answers an operation with what the file has under its id, and that of the session;
    `say` is an event.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = msgspec.json.decode(FILE.read_bytes())
        self.main: str = self.answers["main"]
        self._events = asyncio.Queue[Event]()

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Return what is stored. Raises OperationError where nothing is."""
        name = f"{operation.id} {getattr(args, 'session_id', '')}".strip()
        for key in (name, operation.id):
            if key in self.answers:
                return msgspec.convert(self.answers[key], operation.gives)
        raise OperationError("NotFoundError", f"There is nothing stored for {name}.")

    async def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncIterator[StampedEvent]:
        """Yield what is said from now on."""
        del after
        while True:
            yield StampedEvent(None, await self._events.get())

    def say(self, event: Event) -> None:
        """Let followers hear an event."""
        self._events.put_nowait(event)

    def session(self) -> Session:
        """Return the session in which there was work."""
        return msgspec.convert(self.answers[f"{SESSION_GET.id} {self.main}"], Session)

    def messages(self) -> list[MessageWithParts]:
        """Return what was said in it."""
        return msgspec.convert(
            self.answers[f"{SESSION_MESSAGES.id} {self.main}"], list[MessageWithParts]
        )


def stored_ui(client: StoredClient, state: Path, *, resumed: bool) -> TerminalUI:
    """Return the UI over what is stored; `state`: a folder for what it keeps."""

    @asynccontextmanager
    async def opened(_ask: AskTrust) -> AsyncGenerator[Target]:
        yield Target(client, PLACE, lambda _session: client, attachment)

    def attachment(path: Path) -> FilePartInput:
        return FilePartInput(mime="text/plain", url=path.as_uri())

    async def chosen(_target: Target) -> Session | None:
        return client.session() if resumed else None

    async def created(given: Client) -> Session:
        return await given.call(SESSION_CREATE, SESSION_CREATE.takes())

    return create_ui(
        UiLaunch(
            open_project=opened,
            choose_session=chosen,
            create_session=created,
            directory=PLACE,
            state_folder=state,
        )
    )
