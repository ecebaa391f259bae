"""`GET /pty/{ptyID}/connect`, in the preview below `/api` too: a WebSocket that shows a terminal and types into it."""

import asyncio
import os
from collections.abc import Coroutine
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from codeloop.app.app import App
from codeloop.app.handlers.workspace.pty import find_terminal
from codeloop.schema.bounds.terminal import PTY_STALL
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.server.guard import TICKETED
from codeloop.server.requests import directory_of
from codeloop.server.responses import refusal
from codeloop.workspace.terminal.terminals import Terminal
from codeloop.workspace.terminal.viewers import TooSlow, Viewer

_PATH = "/pty/{ptyID}/connect"
_CURSOR = b"\0"
"""Begins the one binary message, after which everything is new."""


class CloseReason(Struct, frozen=True):
    """How we end a connection."""

    code: int
    reason: str = ""


_ENDED = CloseReason(1000)
_LAGGED = CloseReason(1013, "The output came faster than it was read. Connect again for what is kept.")
_STUCK = CloseReason(1013, "The program does not read its input.")


def terminal_routes(app: App) -> list[BaseRoute]:
    """Return the WebSocket, and what answers whoever asks for it as for a page."""

    async def connect(socket: WebSocket) -> None:
        try:
            terminal = await _terminal(app, socket)
            watcher = terminal.watch(_cursor(socket))
        except CodeloopError as error:
            await socket.send_denial_response(refusal(error))
        except ValueError as error:
            await socket.send_denial_response(refusal(OperationError("BadRequest", f"{error}.")))
        else:
            await _converse(socket, terminal, watcher)

    paths = ((_PATH, "pty.connect"), (f"/api{_PATH}", "v2.pty.connect"))
    return [
        route
        for path, name in paths
        for route in (WebSocketRoute(path, connect, name=name), Route(path, _strip_body, methods=["GET"]))
    ]


async def _strip_body(request: Request) -> Response:
    response = refusal(OperationError("BadRequest", f"{request.url.path} answers WebSockets only."))
    response.headers["upgrade"] = "websocket"
    return response


async def _terminal(app: App, socket: WebSocket) -> Terminal:
    """Return the terminal that is meant. Raises CodeloopError: a bad ticket, none there.

    Whoever has only a ticket must not make us open a project: it counts in one that is open, or not at all.
    """
    pty_id: str = socket.path_params["ptyID"]
    directory = app.directory(directory_of(socket))
    if "ticket" not in socket.query_params and TICKETED not in socket.scope.get("state", {}):
        return find_terminal(await app.project(directory), pty_id)
    ticket = socket.query_params.get("ticket", "")
    real = os.path.realpath(directory)
    for project in app.projects:
        is_meant = os.path.realpath(project.settings.project_root.directory) == real
        if is_meant and project.workspace.terminals.tickets.take(ticket, pty_id):
            return find_terminal(project, pty_id)
    raise OperationError("PtyForbiddenError", "The ticket is invalid, for another terminal, already used or too old.")


def _cursor(socket: WebSocket) -> int | None:
    """Return the position that is asked for. Raises ValueError."""
    cursor = socket.query_params.get("cursor")
    if not cursor:
        return None
    if cursor != "-1" and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 20):
        raise ValueError(f"The cursor {cursor[:40]!r} is neither a number of characters nor -1")
    return int(cursor)


async def _converse(socket: WebSocket, terminal: Terminal, watcher: Viewer) -> None:
    """Show and type until the terminal ends or the client goes."""
    both: list[asyncio.Task[CloseReason | None]] = []
    try:
        await socket.accept()
        both = [asyncio.create_task(_run_side(work)) for work in (_show(socket, watcher), _type(socket, terminal))]
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        farewell = next((task.result() for task in both if task in done and task.result()), None)
    finally:
        watcher.close()
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
    if farewell is not None and WebSocketState.DISCONNECTED not in {socket.client_state, socket.application_state}:
        await _run_side(_close(socket, farewell))


async def _run_side(work: Coroutine[Any, Any, CloseReason | None]) -> CloseReason | None:
    """Do one side's work; a client that went, or that takes nothing, is only the end of it."""
    try:
        return await work
    except (WebSocketDisconnect, TimeoutError):
        return None


async def _show(socket: WebSocket, watcher: Viewer) -> CloseReason:
    for piece in watcher.replay():
        await _await_send(socket.send_text(piece))
    await _await_send(socket.send_bytes(_CURSOR + msgspec.json.encode({"cursor": watcher.position})))
    try:
        while text := await watcher.wait_for_output():
            await _await_send(socket.send_text(text))
    except TooSlow:
        return _LAGGED
    return _ENDED


async def _type(socket: WebSocket, terminal: Terminal) -> CloseReason | None:
    while (message := await socket.receive())["type"] == "websocket.receive":
        text, data = message.get("text"), message.get("bytes")
        try:
            await _await_send(terminal.type(text.encode() if text is not None else data or b""))
        except TimeoutError:
            return _STUCK
    return None


async def _close(socket: WebSocket, farewell: CloseReason) -> None:
    await _await_send(socket.close(farewell.code, farewell.reason))


async def _await_send(work: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(PTY_STALL.seconds):
        await work
