"""`GET /pty/{ptyID}/connect`, in the preview below `/api` too: a WebSocket that shows
a terminal and types into it.
"""

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
from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.schema.bounds.server import PTY_STALL
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.server.guard import TICKET_ONLY_KEY
from codeloop.server.requests import get_directory
from codeloop.server.responses import make_error_response
from codeloop.workspace.terminal.terminal_output import ClientTooSlow, Viewer
from codeloop.workspace.terminal.terminals import Terminal

_CONNECT_PATH = "/pty/{ptyID}/connect"
_CURSOR_PREFIX = b"\0"
"""The first byte of the only binary message, which holds the cursor.
Output after it is new, output before it is not.

Clients tell it by this byte from output, which is sent as text.
"""


class CloseReason(Struct, frozen=True):
    """The code and reason with which we close a connection."""

    code: int
    reason: str = ""


# Codes of RFC 6455 and its registry: 1000 is a normal end, 1013 "try again later".
_NORMAL_END = CloseReason(1000)
_TOO_SLOW = CloseReason(
    1013, "The output came faster than it was read. Connect again for what is kept."
)
_INPUT_STUCK = CloseReason(1013, "The program does not read its input.")


def make_terminal_routes(app: App) -> list[BaseRoute]:
    """Return the routes of the WebSocket, and of plain requests to its path, which are refused."""

    async def connect(socket: WebSocket) -> None:
        try:
            terminal = await _find_terminal(app, socket)
            viewer = terminal.watch(_read_cursor(socket))
        except CodeloopError as error:
            # Before the upgrade to a WebSocket, so that the client gets an HTTP
            # error with its body.
            await socket.send_denial_response(make_error_response(error))
        except ValueError as error:
            await socket.send_denial_response(
                make_error_response(OperationError("BadRequest", f"{error}."))
            )
        else:
            await _relay(socket, terminal, viewer)

    paths = ((_CONNECT_PATH, "pty.connect"), (f"/api{_CONNECT_PATH}", "v2.pty.connect"))
    return [
        route
        for path, name in paths
        for route in (
            WebSocketRoute(path, connect, name=name),
            Route(path, _require_upgrade, methods=["GET"]),
        )
    ]


async def _require_upgrade(request: Request) -> Response:
    response = make_error_response(
        OperationError("BadRequest", f"{request.url.path} answers WebSockets only.")
    )
    response.headers["upgrade"] = "websocket"
    return response


async def _find_terminal(app: App, socket: WebSocket) -> Terminal:
    """Return the requested terminal. Raises CodeloopError: a bad ticket,
    or there is no such terminal.

    A client that has only a ticket must not make us open a project,
    so the ticket counts only in open projects.
    """
    pty_id: str = socket.path_params["ptyID"]
    directory = app.resolve_directory(get_directory(socket))
    if "ticket" not in socket.query_params and TICKET_ONLY_KEY not in socket.scope.get("state", {}):
        return find_terminal(await app.get_project(directory), pty_id)
    ticket = socket.query_params.get("ticket", "")
    # The client may name the project by another path to it.
    real = os.path.realpath(directory)
    for project in app.projects:
        is_same = os.path.realpath(project.settings.project_root.directory) == real
        if is_same and project.workspace.terminals.tickets.redeem(ticket, pty_id):
            return find_terminal(project, pty_id)
    raise OperationError(
        "PtyForbiddenError", "The ticket is invalid, for another terminal, already used or too old."
    )


def _read_cursor(socket: WebSocket) -> int | None:
    """Return the position from which output is wanted, in characters;
    None: all that is kept, -1: only new output.

    Raises ValueError.
    """
    cursor = socket.query_params.get("cursor")
    if not cursor:
        return None
    if cursor != "-1" and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 20):
        raise ValueError(f"The cursor {cursor[:40]!r} is neither a number of characters nor -1")
    return int(cursor)


async def _relay(socket: WebSocket, terminal: Terminal, viewer: Viewer) -> None:
    """Send the terminal's output and type the client's input until the terminal ends
    or the client disconnects.
    """
    tasks: list[asyncio.Task[CloseReason | None]] = []
    try:
        await socket.accept()
        tasks = [
            asyncio.create_task(_run_while_connected(work))
            for work in (_send_output(socket, viewer), _type_input(socket, terminal))
        ]
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        close_reason = next(
            (task.result() for task in tasks if task in done and task.result()), None
        )
    finally:
        viewer.close()
        await cancel_all(tasks)
    if close_reason is not None and WebSocketState.DISCONNECTED not in {
        socket.client_state,
        socket.application_state,
    }:
        await _run_while_connected(_close(socket, close_reason))


async def _run_while_connected(work: Coroutine[Any, Any, CloseReason | None]) -> CloseReason | None:
    """Send or receive; return None if the client disconnects or reads nothing:
    there is nobody to tell why.
    """
    try:
        return await work
    except (WebSocketDisconnect, TimeoutError):
        return None


async def _send_output(socket: WebSocket, viewer: Viewer) -> CloseReason:
    """Send the kept output, the cursor and the new output until the terminal ends;
    return why to close.
    """
    for piece in viewer.replay():
        await _send_in_time(socket.send_text(piece))
    await _send_in_time(
        socket.send_bytes(_CURSOR_PREFIX + msgspec.json.encode({"cursor": viewer.position}))
    )
    try:
        while text := await viewer.wait_for_output():
            await _send_in_time(socket.send_text(text))
    except ClientTooSlow:
        return _TOO_SLOW
    return _NORMAL_END


async def _type_input(socket: WebSocket, terminal: Terminal) -> CloseReason | None:
    """Type what the client sends until it disconnects;
    return why to close if the program does not read its input.
    """
    while (message := await socket.receive())["type"] == "websocket.receive":
        text, data = message.get("text"), message.get("bytes")
        try:
            await _send_in_time(
                terminal.send_input(text.encode() if text is not None else data or b"")
            )
        except TimeoutError:
            return _INPUT_STUCK
    return None


async def _close(socket: WebSocket, close_reason: CloseReason) -> None:
    await _send_in_time(socket.close(close_reason.code, close_reason.reason))


async def _send_in_time(work: Coroutine[Any, Any, None]) -> None:
    """Send something. Raises TimeoutError if the other side does not take it within PTY_STALL."""
    async with asyncio.timeout(PTY_STALL.seconds):
        await work
