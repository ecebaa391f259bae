"""The event streams: `GET /event` of one directory, `GET /global/event` of all of them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from codeloop.app.app import App
from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.schema.bounds.server import SERVER_HEARTBEAT_LEAST, SERVER_STREAM_END, SERVER_STREAMS
from codeloop.schema.errors import CodeloopError
from codeloop.server.events.cursor import Position, parse_cursor, parse_sequence_number
from codeloop.server.events.hub import Hub
from codeloop.server.events.subscriber import Subscriber
from codeloop.server.http_protocol import CUT_EXTENSION
from codeloop.server.requests import BadArguments, get_directory
from codeloop.server.responses import make_error_response

Endpoint = Callable[[Request], Awaitable[Response]]

log = logging.getLogger("codeloop.server")

STREAM_HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",  # a proxy that compresses would hold events back
    "x-accel-buffering": "no",  # so does nginx, by default
}
HEARTBEAT_HEADER = "x-codeloop-heartbeat"
"""Header of a request: the wanted ms between heartbeats;
of the answer: the ms between them at most.
"""
_RETRY_SECONDS = "5"
"""Time after which a client may try again when all streams are taken."""


class EventStream(Response):
    """The answer that lasts until its client disconnects or the hub ends its subscriber.

    `subscriber`: was added to the hub before.
    """

    def __init__(self, hub: Hub, subscriber: Subscriber, heartbeat_seconds: float | None) -> None:
        headers = dict(STREAM_HEADERS)
        if heartbeat_seconds is not None:
            headers[HEARTBEAT_HEADER] = str(int(heartbeat_seconds * 1000))
        super().__init__(headers=headers)
        # Set by Starlette for an empty body.
        del self.headers["content-length"]
        self._hub = hub
        self._subscriber = subscriber

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write until the client leaves or the hub ends the stream."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._stream(scope, receive, send)
        finally:
            self._hub.remove_subscriber(self._subscriber)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        write_task = asyncio.create_task(self._write(send))
        disconnect_task = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait(
                (write_task, disconnect_task, self._subscriber.end_signal),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if write_task.done() and write_task.exception() is not None:
                log.error("An event stream has ended.", exc_info=write_task.exception())
            self._hub.remove_subscriber(self._subscriber)
            if not disconnect_task.done():
                await cancel_all([write_task])
                await self._finish(scope, send)
                await disconnect_task
        finally:
            await cancel_all([write_task, disconnect_task])

    async def _write(self, send: Send) -> None:
        """Write until the client has read nothing for `write_timeout`."""
        with suppress(TimeoutError):
            async with aclosing(self._hub.stream_chunks(self._subscriber)) as chunks:
                async for chunk in chunks:
                    async with asyncio.timeout(self._hub.write_timeout):
                        await send(
                            {
                                "type": "http.response.body",
                                "body": chunk,
                                "more_body": True,
                            }
                        )

    async def _finish(self, scope: Scope, send: Send) -> None:
        """End the answer, or close the connection of a client that reads nothing."""
        try:
            async with asyncio.timeout(SERVER_STREAM_END.seconds):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            scope["extensions"][CUT_EXTENSION]["call"]()


async def _wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has left, or the answer is complete."""
    while (await receive())["type"] != "http.disconnect":
        pass


def make_stream_routes(app: App, hub: Hub) -> list[BaseRoute]:
    """Return the routes of the streams."""

    async def stream_directory(request: Request) -> Response:
        project = await app.get_project(app.resolve_directory(get_directory(request)))
        root = project.settings.project_root
        return _open_stream(request, hub, directory=root.directory_name, project=root.project_id)

    async def stream_all(request: Request) -> Response:
        return _open_stream(request, hub)

    return [
        Route("/event", _add_error_responses(stream_directory)),
        Route("/global/event", _add_error_responses(stream_all)),
    ]


def _add_error_responses(endpoint: Endpoint) -> Endpoint:
    """Wrap an endpoint so that its errors become responses."""

    async def respond(request: Request) -> Response:
        try:
            return await endpoint(request)
        except (CodeloopError, BadArguments) as error:
            return make_error_response(error)

    return respond


def _open_stream(
    request: Request,
    hub: Hub,
    *,
    directory: str | None = None,
    project: str | None = None,
) -> Response:
    """Open a stream that starts after the event of the header `Last-Event-ID`,
    or of the query's `after`, or now.

    `directory`, `project`: as in Subscriber.
    """
    last_event_id = request.headers.get("last-event-id")
    text = last_event_id or request.query_params.get("after")
    position = _parse_position(text, project) if text else None
    # A browser's EventSource sends the header by itself,
    # and a refusal would end it for good: it gets a resync instead.
    if text and position is None and not last_event_id:
        raise BadArguments(
            "Query", 'This is not a position in the events: send the `id` of one.\n  at ["after"]'
        )
    if request.method == "HEAD":
        return Response(headers=STREAM_HEADERS)
    if hub.is_full:
        return refuse_stream()
    heartbeat_seconds = _parse_heartbeat(request.headers.get(HEARTBEAT_HEADER, ""))
    subscriber = Subscriber(directory, project, heartbeat_seconds)
    hub.add_subscriber(subscriber, position, has_bad_position=bool(text) and position is None)
    return EventStream(hub, subscriber, heartbeat_seconds)


def refuse_stream() -> Response:
    """Return the answer where all streams are taken."""
    error = {
        "message": f"The server has {SERVER_STREAMS.value} event streams open. Close one, or try again."
    }
    body = msgspec.json.encode({"name": "UnknownError", "data": error})
    return Response(body, 503, {"retry-after": _RETRY_SECONDS}, media_type="application/json")


def _parse_heartbeat(text: str) -> float | None:
    """Return the seconds between two heartbeats that a client asks for in ms;
    None: it asks for none.
    """
    # `isdigit` alone accepts "²".
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    return max(int(text), SERVER_HEARTBEAT_LEAST.value) / 1000 if is_number else None


def _parse_position(text: str, project: str | None) -> Position | None:
    return parse_cursor(text) if project is None else parse_sequence_number(text, project)
