"""The sessions that an editor has open, the clients of their directories, and who follows their events."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from codeloop.acp.buffers import EditorBuffers
from codeloop.acp.connection import INVALID_PARAMS, NOT_FOUND, EditorConnection, RpcError
from codeloop.acp.options import load_available
from codeloop.acp.params import ClientCapabilities, NewParams, OpenParams
from codeloop.acp.questions import ConnectedEditor
from codeloop.acp.roots import set_roots
from codeloop.acp.session import EditorSession
from codeloop.acp.versions.version1 import Version1
from codeloop.client.client import Client
from codeloop.schema.api.project import AddMcp
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError, GapError, OperationError
from codeloop.schema.message import Session
from codeloop.schema.operation import MCP_ADD, SESSION_GET
from codeloop.schema.wire import JSON

OpenClient = Callable[[str], Awaitable[tuple[Client, tuple[str, ...]]]]
"""Returns the client of an absolute directory, and notes for the user. Raises CodeloopError."""
_log = logging.getLogger(__name__)


class EditorSessions:
    """Opens, finds and closes sessions. `link`: what the editor has said that it speaks and can do."""

    def __init__(self, connection: EditorConnection, open_client: OpenClient, buffers: EditorBuffers) -> None:
        self.link = ConnectedEditor(connection, Version1(ClientCapabilities()), ClientCapabilities())
        self._open_client = open_client
        self._buffers = buffers
        self._clients: dict[str, Client] = {}
        self._notes: dict[str, tuple[str, ...]] = {}
        self._following: dict[str, asyncio.Task[None]] = {}
        self._sessions: dict[str, EditorSession] = {}
        self._later: set[asyncio.Task[None]] = set()

    def get(self, session_id: str) -> EditorSession:
        """Return an open session. Raises RpcError."""
        if (session := self._sessions.get(session_id)) is None:
            raise RpcError(NOT_FOUND, f"Session {session_id} is not open. Load or resume it first.")
        return session

    async def client_of(self, directory: str) -> Client:
        """Return the client of a directory. Raises RpcError, CodeloopError."""
        if directory not in self._clients:
            if not Path(directory).is_dir():
                raise RpcError(INVALID_PARAMS, f"There is no directory {directory}.")
            self._clients[directory], self._notes[directory] = await self._open_client(directory)
        return self._clients[directory]

    async def find(self, session_id: str, directory: str | None) -> tuple[Client, Session]:
        """Return a session and the client of its own directory. Raises RpcError, CodeloopError."""
        client = await self.client_of(directory or str(Path.cwd()))
        try:
            session = await client.call(SESSION_GET, SessionId(session_id=session_id))
        except OperationError as error:
            raise RpcError(NOT_FOUND, str(error)) from error
        return await self.client_of(session.directory), session

    async def open(self, client: Client, session: Session, request: NewParams | OpenParams) -> EditorSession:
        """Open a session with the MCP servers and further roots that the editor brings, and follow it."""
        await self.forget(session.id)
        for server in request.mcp_servers:
            await self._add_server(client, server)
        session = await set_roots(client, session, request.additional_directories)
        editor_session = EditorSession(self.link, client, session, await load_available(client))
        self._sessions[session.id] = editor_session
        self._buffers.sessions[session.id] = None
        self._follow(session.directory, client)
        self.do_later(self._announce(editor_session))
        return editor_session

    async def reload(self) -> None:
        """Ask again what every open session can choose, and tell the editor what has changed."""
        for session in self._sessions.values():
            session.available = await load_available(session.client)
            session.report_options()

    async def forget(self, session_id: str) -> None:
        """Stop what a session does, and show it no more."""
        self._buffers.sessions.pop(session_id, None)
        if (session := self._sessions.pop(session_id, None)) is not None:
            await session.close()

    async def close(self) -> None:
        """Stop every session and follow no more."""
        await asyncio.gather(*(session.close() for session in self._sessions.values()))
        for task in (*self._following.values(), *self._later):
            task.cancel()

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _announce(self, editor_session: EditorSession) -> None:
        """Say what the editor can show only once it knows the session: the answer to its request goes first."""
        await asyncio.sleep(0)
        with suppress(CodeloopError):
            await editor_session.announce()
        for note in self._notes.pop(editor_session.session.directory, ()):
            editor_session.notify("warning", note)

    async def _add_server(self, client: Client, server: JSON) -> None:
        """Add an MCP server; one that does not work costs its tools, not the session."""
        name = str(server.get("name") or "")
        try:
            await client.call(MCP_ADD, AddMcp(name=name, config=_config_of(server)))
        except CodeloopError as error:
            _log.warning("MCP server %s: %s", name, error)

    def _follow(self, directory: str, client: Client) -> None:
        """Follow a directory's events; one that can't be shown is logged; later ones are still shown."""
        running = self._following.get(directory)
        if running is not None and not running.done():
            return
        task = asyncio.create_task(self._follow_events(client))
        self._following[directory] = task

        def over(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("An event could not be shown", exc_info=error)
                self._follow(directory, client)

        task.add_done_callback(over)

    async def _follow_events(self, client: Client) -> None:
        while True:
            with suppress(GapError):
                async for stamped_event in client.follow():
                    for session in list(self._sessions.values()):
                        if session.client is client:
                            await session.take(stamped_event.event)


def _config_of(server: JSON) -> JSON:
    """Return a server that the editor names as our configuration has it."""
    if server.get("type") in {"http", "sse"}:
        headers: list[JSON] = server.get("headers") or []
        return {
            "type": "remote",
            "url": server.get("url"),
            "headers": {str(each["name"]): str(each["value"]) for each in headers},
        }
    variables: list[JSON] = server.get("env") or []
    return {
        "type": "local",
        "command": [str(server.get("command") or ""), *map(str, server.get("args") or [])],
        "environment": {str(each["name"]): str(each["value"]) for each in variables},
    }
