"""`EditorSessions`: the sessions that an editor has open, the clients of their directories,
and their events.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from codeloop.acp.connected_editor import ConnectedEditor
from codeloop.acp.connection import INVALID_PARAMS, NOT_FOUND, EditorConnection, RpcError
from codeloop.acp.editor_buffers import EditorBuffers
from codeloop.acp.editor_session import EditorSession
from codeloop.acp.options import load_available_choices
from codeloop.acp.params import ClientCapabilities, NewSessionParams, OpenSessionParams
from codeloop.acp.versions.version1 import Version1
from codeloop.acp.workspace_roots import set_roots
from codeloop.client.client import Client
from codeloop.schema.api.mcp import MCP_ADD, AddMcp
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import CodeloopError, GapError, OperationError
from codeloop.schema.message import Session
from codeloop.schema.wire import JSON

OpenClient = Callable[[str], Awaitable[tuple[Client, tuple[str, ...]]]]
"""Opens the project of an absolute directory; returns its client, and notes for the user.
Raises CodeloopError.
"""
_log = logging.getLogger(__name__)


class EditorSessions:
    """Opens, finds and closes sessions. `editor`: set anew by `initialize`."""

    def __init__(
        self, connection: EditorConnection, open_client: OpenClient, buffers: EditorBuffers
    ) -> None:
        # Until `initialize`: version 1, without optional features.
        self.editor = ConnectedEditor(
            connection, Version1(ClientCapabilities()), ClientCapabilities()
        )
        self._open_client = open_client
        self._buffers = buffers
        # By directory. The notes are those that no session has shown yet.
        self._clients: dict[str, Client] = {}
        self._notes: dict[str, tuple[str, ...]] = {}
        self._follow_tasks: dict[str, asyncio.Task[None]] = {}
        # By session id.
        self._sessions: dict[str, EditorSession] = {}
        self._background_tasks: set[asyncio.Task[None]] = set()

    def get(self, session_id: str) -> EditorSession:
        """Return an open session. Raises RpcError."""
        if (session := self._sessions.get(session_id)) is None:
            raise RpcError(NOT_FOUND, f"Session {session_id} is not open. Load or resume it first.")
        return session

    async def open_client(self, directory: str) -> Client:
        """Return the client of a directory, which is opened at its first use.
        Raises RpcError, CodeloopError.
        """
        if directory not in self._clients:
            if not Path(directory).is_dir():
                raise RpcError(INVALID_PARAMS, f"There is no directory {directory}.")
            self._clients[directory], self._notes[directory] = await self._open_client(directory)
        return self._clients[directory]

    async def find(self, session_id: str, directory: str | None) -> tuple[Client, Session]:
        """Return a session and the client of its own directory. Raises RpcError, CodeloopError."""
        client = await self.open_client(directory or str(Path.cwd()))
        try:
            session = await client.call(SESSION_GET, SessionId(session_id=session_id))
        except OperationError as error:
            raise RpcError(NOT_FOUND, str(error)) from error
        # The session may belong to another work tree of the project.
        return await self.open_client(session.directory), session

    async def open(
        self, client: Client, session: Session, request: NewSessionParams | OpenSessionParams
    ) -> EditorSession:
        """Open a session with the editor's MCP servers and additional directories,
        and show its events from now on.
        """
        # An editor may load a session again that it has open; the new one takes its place.
        await self.close_session(session.id)
        for server in request.mcp_servers:
            await self._add_server(client, server)
        session = await set_roots(client, session, request.additional_directories)
        editor_session = EditorSession(
            self.editor, client, session, await load_available_choices(client)
        )
        # From the request, not from the session: others may change what is stored.
        editor_session.choices.directories = list(request.additional_directories)
        self._sessions[session.id] = editor_session
        self._buffers.sessions[session.id] = None
        self._follow(session.directory, client)
        self.run_in_background(self._announce(editor_session))
        return editor_session

    async def reload(self) -> None:
        """Reload the agents and models of every open session,
        and send the changes to the editor.
        """
        for session in self._sessions.values():
            session.available = await load_available_choices(session.client)
            session.report_options()

    async def close_session(self, session_id: str) -> None:
        """Stop the turns of a session, and no longer show its events."""
        self._buffers.sessions.pop(session_id, None)
        if (session := self._sessions.pop(session_id, None)) is not None:
            await session.close()

    async def close(self) -> None:
        """Close every session, and stop following events."""
        await asyncio.gather(*(session.close() for session in self._sessions.values()))
        for task in (*self._follow_tasks.values(), *self._background_tasks):
            task.cancel()

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task whose result nobody needs."""
        # The set keeps the task alive: the event loop holds only weak references.
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)

    async def _announce(self, editor_session: EditorSession) -> None:
        """Send the session's commands, and the notes about its directory,
        which its first session shows.
        """
        # Editors ignore updates of a session that they don't know yet: first the
        # answer with its id is sent.
        await asyncio.sleep(0)
        with suppress(CodeloopError):
            await editor_session.announce()
        for note in self._notes.pop(editor_session.session.directory, ()):
            editor_session.notify("warning", note)

    async def _add_server(self, client: Client, server: JSON) -> None:
        """Add an MCP server; a failure is logged: it costs the server's tools, not the session."""
        name = str(server.get("name") or "")
        try:
            await client.call(MCP_ADD, AddMcp(name=name, config=_convert_server(server)))
        except CodeloopError as error:
            _log.warning("MCP server %s: %s", name, error)

    def _follow(self, directory: str, client: Client) -> None:
        """Show the events of a directory, in a task that an error does not end."""
        running = self._follow_tasks.get(directory)
        if running is not None and not running.done():
            return
        task = asyncio.create_task(self._follow_events(client))
        self._follow_tasks[directory] = task

        def restart_after_error(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                # One event that can't be shown must not freeze the sessions of the directory.
                _log.error("An event could not be shown", exc_info=error)
                self._follow(directory, client)

        task.add_done_callback(restart_after_error)

    async def _follow_events(self, client: Client) -> None:
        while True:
            # After a gap, follow from now on.
            with suppress(GapError):
                async for stamped_event in client.follow():
                    # A copy: sessions are opened and closed meanwhile.
                    for session in list(self._sessions.values()):
                        if session.client is client:
                            await session.handle_event(stamped_event.event)


def _convert_server(server: JSON) -> JSON:
    """Convert an MCP server from the protocol's form to that of our configuration."""
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
