"""The ASGI application: a route for each operation, the streams, terminals and pages,
and answers to unknown paths.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from codeloop.app.app import App
from codeloop.app.handlers.session.message import read_page
from codeloop.app.process_dispatch import carry_out
from codeloop.schema.api.pty import PTY_TICKET
from codeloop.schema.api.session_inputs import (
    COMMAND,
    PROMPT,
    SESSION_INIT,
    SESSION_SHELL,
    SUMMARIZE,
)
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.bounds.server import SERVER_TURN_ANSWER
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import AnyOperation
from codeloop.schema.operation_table import OPERATIONS, SERVER_OPERATIONS
from codeloop.server.events.hub import Hub
from codeloop.server.events.routes import make_stream_routes
from codeloop.server.operations import MEDIA_TYPES
from codeloop.server.pty_socket import make_terminal_routes
from codeloop.server.requests import get_directory, read_arguments
from codeloop.server.responses import (
    make_error_response,
    make_not_found,
    make_response,
    make_wrong_method,
)

_MIN_BYTES = 4_096
"""Bytes from which an answer is compressed: a smaller one fits into a few packets anyway."""
_LEVEL = 1
"""The fastest level: a tenth of the time of the usual one, and a few per cent larger."""
_GZIP_WINDOW = 31
"""zlib's name for its largest window in the frame of gzip."""


async def compress_response(request: Request, response: Response) -> Response:
    """Return the response, with its body compressed if that is worth it and the client takes it."""
    body = bytes(response.body)
    if len(body) < _MIN_BYTES or "gzip" not in request.headers.get("accept-encoding", ""):
        return response
    # A large body takes long, and nothing else would be answered meanwhile.
    response.body = await asyncio.to_thread(_compress, body)
    response.headers["content-length"] = str(len(response.body))
    response.headers["content-encoding"] = "gzip"
    response.headers["vary"] = "Accept-Encoding, Origin"
    return response


def _compress(body: bytes) -> bytes:
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return compressor.compress(body) + compressor.flush()


if TYPE_CHECKING:
    from codeloop.server.version2.routes import Version2Site
    from codeloop.server.web_dir import WebApp

# All that are known: which of them a path takes is said by the answer to the others.
_VERSION2_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")

Endpoint = Callable[[Request], Awaitable[Response]]

_ANSWERED_AFTER_TURN = frozenset(
    {PROMPT.id, COMMAND.id, SESSION_INIT.id, SESSION_SHELL.id, SUMMARIZE.id}
)
"""Operations that are answered when the turn is over.

The answer waits `SERVER_TURN_ANSWER`, since some clients stop reading the event
stream when they have it.
"""


def make_application(
    app: App, hub: Hub, page_routes: Sequence[BaseRoute] = (), web_dir: Path | None = None
) -> Starlette:
    """Return the application for an App, whose events the hub streams.

    `page_routes`: those of the browser UI. `web_dir`: the files of a web app,
    served where no route matches.
    """
    web_app = _load_web_app(web_dir) if web_dir is not None else None

    async def answer_missing(request: Request, _error: Exception) -> Response:
        response = await web_app.find_response(request) if web_app is not None else None
        return response or make_not_found(request.url.path)

    routes = [
        *_make_version2_routes(app, hub),
        *make_operation_routes(app),
        *make_stream_routes(app, hub),
        *make_terminal_routes(app),
        Route("/doc", _answer_document, methods=["GET"], name="doc"),
        *page_routes,
    ]
    application = Starlette(
        routes=routes, exception_handlers={404: answer_missing, 405: _answer_wrong_method}
    )
    # By the contract, a path with a slash at its end is another path, and unknown.
    application.router.redirect_slashes = False
    return application


def _load_web_app(folder: Path) -> "WebApp":
    # Few servers have a web app, so it is not loaded at every start.
    from codeloop.server.web_dir import WebApp

    return WebApp(folder)


async def _answer_wrong_method(request: Request, _error: Exception) -> Response:
    response = make_wrong_method(request.url.path, request.method)
    # PARTIAL: the path matches, the method does not.
    # The first path counts, as it would for a request.
    matching = [
        route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL
    ]
    same_path = [route for route in matching if route.path == matching[0].path]
    response.headers["allow"] = ", ".join(
        sorted({method for route in same_path for method in route.methods})
    )
    return response


def make_operation_routes(app: App) -> list[BaseRoute]:
    """Return a route for each row of the table."""
    # The requests or answers of these have headers of their own.
    special_endpoints: dict[str, Endpoint] = {
        SESSION_MESSAGES.id: _make_messages_endpoint(app),
        PTY_TICKET.id: _make_ticket_endpoint(app),
    }
    return [
        Route(
            row.path,
            special_endpoints.get(row.id) or _make_endpoint(app, row),
            methods=[row.method],
            name=row.id,
        )
        for row in (*OPERATIONS, *SERVER_OPERATIONS)
    ]


def _make_version2_routes(app: App, hub: Hub) -> list[Route]:
    """Return the routes of version 2, which is loaded with the first request."""
    loaded: list[Version2Site] = []

    async def endpoint(request: Request) -> Response:
        if not loaded:
            from codeloop.server.version2.routes import Version2Site

            loaded.append(Version2Site(app, hub, _run_and_respond))
        response = await loaded[0].respond(request)
        is_whole = getattr(response, "body", None)
        return await compress_response(request, response) if is_whole else response

    return [
        Route(path, endpoint, methods=_VERSION2_METHODS)
        for path in ("/api/{rest:path}", "/auth/connect/{code}")
    ]


async def _answer_document(_request: Request) -> Response:
    from codeloop.server.openapi.document import make_document

    return Response(make_document(), media_type="application/json")


def _make_endpoint(app: App, operation: AnyOperation) -> Endpoint:
    async def run_operation(request: Request) -> Any:
        args = await read_arguments(operation, request)
        result = await carry_out(
            app, operation, args, app.resolve_directory(get_directory(request))
        )
        if operation.id in _ANSWERED_AFTER_TURN:
            await asyncio.sleep(SERVER_TURN_ANSWER.seconds)
        if operation.id in MEDIA_TYPES:
            # A diff may hold lone surrogates, from bytes of a file that are not UTF-8.
            return Response(result.encode("utf-8", "replace"), media_type=MEDIA_TYPES[operation.id])
        return result

    async def endpoint(request: Request) -> Response:
        return await compress_response(
            request, await _run_and_respond(lambda: run_operation(request))
        )

    return endpoint


def _make_messages_endpoint(app: App) -> Endpoint:
    """Return the endpoint for a page of messages;
    if there are older ones, headers say how to get them.
    """

    async def answer_page(request: Request) -> Response:
        args: Any = await read_arguments(SESSION_MESSAGES, request)
        list_messages: ListMessages = args
        project = await app.find_session_project(
            list_messages.session_id, app.resolve_directory(get_directory(request))
        )
        messages, cursor = read_page(project, list_messages)
        response = make_response(messages)
        if cursor is not None:
            older = request.url.include_query_params(before=cursor)
            response.headers["x-next-cursor"] = cursor
            response.headers["link"] = f'<{older}>; rel="next"'
            # Scripts of other origins read only the headers that this one lists.
            response.headers["access-control-expose-headers"] = "Link, X-Next-Cursor"
        return response

    async def endpoint(request: Request) -> Response:
        return await compress_response(
            request, await _run_and_respond(lambda: answer_page(request))
        )

    return endpoint


def _make_ticket_endpoint(app: App) -> Endpoint:
    """Return the endpoint for a terminal's ticket, which needs a header that makes
    browsers send a preflight first.
    """
    issue_ticket = _make_endpoint(app, PTY_TICKET)

    async def endpoint(request: Request) -> Response:
        if request.headers.get("x-opencode-ticket") != "1":
            return make_error_response(
                OperationError(
                    "PtyForbiddenError", "A ticket needs the header `x-opencode-ticket: 1`."
                )
            )
        return await issue_ticket(request)

    return endpoint


async def _run_and_respond(
    work: Callable[[], Awaitable[Any]],
    refuse: Callable[[Exception], Response] = make_error_response,
) -> Response:
    """Run an operation, and return the response for its result or its error.
    `refuse`: makes the response of an error.

    It catches every error, so that a client gets one form of answer and no error ends the server.
    """
    try:
        result = await work()
    except Exception as error:
        return refuse(error)
    return result if isinstance(result, Response) else make_response(result)
