"""The streams of version 2: events as they happen, and the durable ones of a session."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Container, Sequence
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from codeloop.app.app import App
from codeloop.app.project import Project
from codeloop.schema.errors import GapError
from codeloop.schema.event import StampedEvent
from codeloop.schema.part import Part
from codeloop.schema.wire import JSON
from codeloop.server.events.hub import Hub
from codeloop.server.events.routes import STREAM_HEADERS, EventStream, refuse_stream
from codeloop.server.events.subscriber import Subscriber
from codeloop.server.requests import read_arguments
from codeloop.server.version2.events import EVENTS_EACH, Translator, make_frames
from codeloop.server.version2.rows import ROWS
from codeloop.server.version2.session_arguments import FollowLog
from codeloop.store.followers import read_event_range
from codeloop.store.store import Store

_HEARTBEAT = b": server.heartbeat\n\n"
"""A comment, which keeps the connection alive."""
_LOG_ROW = next(row for row in ROWS if row.id == "v2.session.log")


async def open_event_stream(request: Request, _app: App, hub: Hub) -> Response:
    """Open the stream of the events of all directories, from now on."""
    if request.method == "HEAD":
        return Response(headers=STREAM_HEADERS)
    if hub.is_full:
        return refuse_stream()
    subscriber = Subscriber(is_version2=True)
    hub.add_subscriber(subscriber, None)
    return EventStream(hub, subscriber, None)


def open_translator(
    announced: Container[str], store: Store
) -> Callable[[StampedEvent, str | None], bytes]:
    """Return the translation of the events of a store to frames; `announced`: as in Translator."""
    translator = make_translator(store, announced=announced)
    return lambda stamped, directory: make_frames(translator.translate(stamped, directory))


def make_translator(
    store: Store, *, is_replay: bool = False, announced: Container[str] = ()
) -> Translator:
    """Return a translator of the events of a store."""

    def find_parts(session_id: str, message_id: str) -> Sequence[Part]:
        if store.find_session(session_id) is None:
            return ()
        entry = store.read_conversation(session_id).find_entry(message_id)
        return () if entry is None else entry.parts

    return Translator(find_parts, is_replay=is_replay, announced=announced)


async def open_log(request: Request, app: App, hub: Hub) -> Response:
    """Open the stream of the durable events of a session after a number; with `follow`,
    it goes on with new ones.
    """
    if request.method == "HEAD":
        return Response(headers=STREAM_HEADERS)
    args = await read_arguments(_LOG_ROW, request)
    if not isinstance(args, FollowLog):
        raise TypeError("the row of the log takes other arguments")
    if args.follow and hub.is_full:
        return refuse_stream()
    project = await app.find_session_project(args.session_id, app.resolve_directory(None))
    project.store.get_session(args.session_id)
    frames = _read_log(project, args.session_id, args.after or 0, follow=args.follow)
    chunks = _end_with(frames, hub)
    if args.follow:
        return _FollowedLog(hub, chunks)
    return StreamingResponse(chunks, headers=STREAM_HEADERS)


class _FollowedLog(StreamingResponse):
    """A log that lasts until its client leaves: it counts as one of the hub's streams."""

    def __init__(self, hub: Hub, chunks: AsyncGenerator[bytes, None]) -> None:
        super().__init__(chunks, headers=STREAM_HEADERS)
        self._hub = hub
        hub.logs.add(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write until the client leaves or the server ends."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._hub.logs.discard(self)


async def _end_with(frames: AsyncGenerator[bytes, None], hub: Hub) -> AsyncGenerator[bytes, None]:
    """Yield frames until there are no more, or the server ends; between them heartbeats."""
    async with aclosing(frames):
        next_frame = asyncio.ensure_future(anext(frames, None))
        try:
            while True:
                await asyncio.wait(
                    (next_frame, hub.end_signal),
                    timeout=hub.heartbeat_seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if next_frame.done():
                    frame = next_frame.result()
                    if frame is None:
                        return
                    next_frame = asyncio.ensure_future(anext(frames, None))
                elif hub.end_signal.done():
                    return
                else:
                    frame = _HEARTBEAT
                yield frame
        finally:
            next_frame.cancel()
            await asyncio.gather(next_frame, return_exceptions=True)


async def _read_log(
    project: Project, session_id: str, after: int, *, follow: bool
) -> AsyncGenerator[bytes, None]:
    store = project.store
    directory = store.get_session(session_id).directory
    until = store.read_last_seq()
    translator = make_translator(store, is_replay=True)

    def select(events: list[JSON]) -> list[JSON]:
        return [
            each
            for each in events
            if (durable := each.get("durable")) is not None
            and durable["aggregateID"] == session_id
            and durable["seq"] > after
        ]

    first = store.outbox.read_pruned_seq()
    try:
        for stamped in read_event_range(store.outbox, first, until + 1, (session_id,)):
            if events := select(translator.translate(stamped, directory)):
                yield make_frames(events)
    except GapError:
        # Other processes have deleted events meanwhile; the client reads the messages.
        pass
    is_running = project.runs.is_running(session_id)
    ended = translator.end_replay(session_id, directory, is_running=is_running)
    yield make_frames(select(ended))
    synced: JSON = {"type": "log.synced", "aggregateID": session_id, "seq": until * EVENTS_EACH}
    yield make_frames([synced])
    if not follow:
        return
    translator.is_replay = False
    async with aclosing(store.follow(until, session=session_id)) as stream:
        async for stamped in stream:
            if events := select(translator.translate(stamped, directory)):
                yield make_frames(events)
