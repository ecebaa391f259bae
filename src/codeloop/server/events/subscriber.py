"""A subscriber of the hub: which events one client follows,
and the queue of frames that are written to it.
"""

import asyncio
from collections import deque

from codeloop.schema.bounds.server import (
    SERVER_STREAM_BYTES,
    SERVER_STREAM_CHUNK,
    SERVER_STREAM_EVENTS,
)
from codeloop.schema.event import Event
from codeloop.schema.ids import now_ms
from codeloop.schema.live_events import ServerConnected, ServerHeartbeat
from codeloop.schema.wire import JSON, encode_json
from codeloop.server.events.cursor import Position, format_cursor


class Subscriber:
    """The stream of one client.

    `directory`: whose events it gets; None: those of all directories;
    `project`: the project of `directory`.
    `heartbeat_seconds`: from one heartbeat to the next; None: as the server sets it.
    `is_version2`: it gets the events of version 2 alone.
    """

    def __init__(
        self,
        directory: str | None = None,
        project: str | None = None,
        heartbeat_seconds: float | None = None,
        *,
        is_version2: bool = False,
    ) -> None:
        self.directory = directory
        self.project = project
        self.is_version2 = is_version2
        self._heartbeat_seconds = heartbeat_seconds
        self.sent_position: Position = {}
        """The last events that the client was sent; no longer kept up to date once
        the subscriber is live.
        """
        self.is_live = False
        """Whether new events go to its queue; before,
        it is sent the stored events that it has missed.
        """
        self.end_signal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once the stream has to end."""
        self._frames: deque[bytes] = deque()
        self._queued_bytes = 0
        self._frame_added = asyncio.Event()

    def follows(self, project: str) -> bool:
        """Return whether this stream includes the events of a project."""
        return self.project is None or self.project == project

    def format_position(self, position: Position) -> str:
        """Return a position as the `id` of an event: a plain number if the subscriber
        follows only one project.
        """
        return (
            format_cursor(position) if self.project is None else str(position.get(self.project, 0))
        )

    def add_event(self, event: Event, position: str | None = None) -> None:
        """Add an event of the server itself to the queue."""
        if self.is_version2:
            self.add_frame(_format_for_version2(event))
            return
        data = encode_json(event)
        self.add_frame(
            format_frame(b'{"payload":%b}' % data if self.directory is None else data, position)
        )

    def add_frame(self, frame: bytes) -> None:
        """Add a frame to the queue. If it is full, the stream ends;
        its client connects again and resumes.
        """
        if self.end_signal.done():
            return
        # One frame is always accepted, however large: with an empty queue the client is not behind.
        if len(self._frames) >= SERVER_STREAM_EVENTS.value or (
            self._frames and self._queued_bytes + len(frame) > SERVER_STREAM_BYTES.value
        ):
            self.end()
            return
        self._frames.append(frame)
        self._queued_bytes += len(frame)
        self._frame_added.set()

    def end(self) -> None:
        """End the stream, and drop its queue."""
        self.is_live = False
        self._frames.clear()
        self._queued_bytes = 0
        if not self.end_signal.done():
            self.end_signal.set_result(None)

    async def take_chunk(self) -> bytes:
        """Wait for events, and return those in the queue,
        `SERVER_STREAM_CHUNK` bytes at most unless one is larger.
        """
        # `end` may have emptied the queue between the signal and this task's turn.
        while not self._frames:
            self._frame_added.clear()
            await self._frame_added.wait()
        frames = [self._frames.popleft()]
        size = len(frames[0])
        while self._frames and size + len(self._frames[0]) <= SERVER_STREAM_CHUNK.value:
            size += len(self._frames[0])
            frames.append(self._frames.popleft())
        self._queued_bytes -= size
        return b"".join(frames)

    async def add_heartbeats(self, max_seconds: float) -> None:
        """Add a heartbeat to the queue at intervals, for ever.
        `max_seconds`: the longest interval.
        """
        while True:
            await asyncio.sleep(
                max_seconds
                if self._heartbeat_seconds is None
                else min(max_seconds, self._heartbeat_seconds)
            )
            self.add_event(ServerHeartbeat())


def _format_for_version2(event: Event) -> bytes:
    """Return an event of the server itself as clients of version 2 know it: only the first one
    is an event there, the others are comments, which keep the connection alive.
    """
    if not isinstance(event, ServerConnected):
        return b": %b\n\n" % str(type(event).__struct_config__.tag).encode()
    known: JSON = {"id": event.id, "created": now_ms(), "type": "server.connected", "data": {}}
    return format_frame(encode_json(known), None)


def format_frame(data: bytes, position: str | None) -> bytes:
    """Return an event as Server-Sent Events write it. `position`: its `id`;
    None: it is not stored and has none.
    """
    return (
        b"data: %b\n\n" % data
        if position is None
        else b"id: %b\ndata: %b\n\n" % (position.encode(), data)
    )


def wrap_event(directory: str | None, project: str, data: bytes) -> bytes:
    """Return the JSON of an event with its directory and project,
    for the stream of all directories.
    """
    directory_field = b"" if directory is None else b'"directory":%b,' % encode_json(directory)
    return b'{%b"project":%b,"payload":%b}' % (directory_field, encode_json(project), data)
