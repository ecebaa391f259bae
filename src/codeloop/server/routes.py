"""The routes: one for each operation of the table, and the streams."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from codeloop.app.app import App
from codeloop.app.handlers.session.message import read_page
from codeloop.app.process_dispatch import carry_out
from codeloop.schema.api.session_requests import ListMessages
from codeloop.schema.bounds.server import SERVER_TURN_ANSWER
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import (
    COMMAND,
    OPERATIONS,
    PROMPT,
    PTY_TICKET,
    SESSION_MESSAGES,
    SESSION_SHELL,
    SUMMARIZE,
    AnyOperation,
)
from codeloop.schema.server_operation import SERVER_OPERATIONS
from codeloop.server.operations import TEXTS
from codeloop.server.preview.routes import preview_routes
from codeloop.server.requests import arguments, directory_of
from codeloop.server.responses import answer, refusal

Endpoint = Callable[[Request], Awaitable[Response]]

TURNS = frozenset({PROMPT.id, COMMAND.id, SESSION_SHELL.id, SUMMARIZE.id})
"""Operations that are answered when the turn is over.

The answer waits `SERVER_TURN_ANSWER`, since some clients stop reading the event stream when they have it.
"""


def routes(app: App) -> list[BaseRoute]:
    """Return a route for each row of the table, and those of the preview."""
    # The answers or requests of these have headers of their own.
    special: dict[str, Endpoint] = {
        SESSION_MESSAGES.id: _make_messages_endpoint(app),
        PTY_TICKET.id: _make_ticket_endpoint(app),
    }
    routes = [
        Route(row.path, special.get(row.id) or _make_endpoint(app, row), methods=[row.method], name=row.id)
        for row in (*OPERATIONS, *SERVER_OPERATIONS)
    ]
    return [*routes, *preview_routes(app, _answer)]


def _make_endpoint(app: App, operation: AnyOperation) -> Endpoint:
    async def run_operation(request: Request) -> Any:
        args = await arguments(operation, request)
        result = await carry_out(app, operation, args, app.directory(directory_of(request)))
        if operation.id in TURNS:
            await asyncio.sleep(SERVER_TURN_ANSWER.seconds)
        if operation.id in TEXTS:
            # A diff may hold lone surrogates, from bytes of a file that are not UTF-8.
            return Response(result.encode("utf-8", "replace"), media_type=TEXTS[operation.id])
        return result

    async def endpoint(request: Request) -> Response:
        return await _answer(lambda: run_operation(request))

    return endpoint


def _make_messages_endpoint(app: App) -> Endpoint:
    """Return the endpoint for a page of messages; if there are older ones, headers say how to get them."""

    async def answer_page(request: Request) -> Response:
        args: Any = await arguments(SESSION_MESSAGES, request)
        list_messages: ListMessages = args
        project = await app.project_of(list_messages.session_id, app.directory(directory_of(request)))
        messages, cursor = read_page(project, list_messages)
        response = answer(messages)
        if cursor is not None:
            older = request.url.include_query_params(before=cursor)
            response.headers["x-next-cursor"] = cursor
            response.headers["link"] = f'<{older}>; rel="next"'
            # Scripts of other origins read only the headers that this one lists.
            response.headers["access-control-expose-headers"] = "Link, X-Next-Cursor"
        return response

    async def endpoint(request: Request) -> Response:
        return await _answer(lambda: answer_page(request))

    return endpoint


def _make_ticket_endpoint(app: App) -> Endpoint:
    """Return the endpoint for a terminal's ticket, which needs a header that makes browsers send a preflight first."""
    issue = _make_endpoint(app, PTY_TICKET)

    async def endpoint(request: Request) -> Response:
        if request.headers.get("x-opencode-ticket") != "1":
            return refusal(OperationError("PtyForbiddenError", "A ticket needs the header `x-opencode-ticket: 1`."))
        return await issue(request)

    return endpoint


async def _answer(work: Callable[[], Awaitable[Any]], refuse: Callable[[Exception], Response] = refusal) -> Response:
    """Run an operation, and return the response for its result or its error. `refuse`: makes the response of an error.

    It catches every error, so that a client gets one form of answer and no error ends the server.
    """
    try:
        result = await work()
    except Exception as error:
        return refuse(error)
    return result if isinstance(result, Response) else answer(result)
