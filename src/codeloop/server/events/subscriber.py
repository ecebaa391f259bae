"""A reader: one client's stream, and its queue."""

import asyncio
from collections import deque

import msgspec

from codeloop.schema.event import Event
from codeloop.schema.limits import SERVER_STREAM_BYTES, SERVER_STREAM_CHUNK, SERVER_STREAM_EVENTS
from codeloop.schema.live_events import ServerHeartbeat
from codeloop.server.events.cursor import Position, format_cursor

_encode = msgspec.json.Encoder().encode


class Reader:
    """One stream. `directory` None: of all of them; else of that one, whose project is `project`."""

    def __init__(self, directory: str | None = None, project: str | None = None, beat: float | None = None) -> None:
        """`beat`: seconds between two heartbeats, when its client asked for them more often than others get them."""
        self.directory = directory
        self.project = project
        self._beat = beat
        self.at: Position = {}
        """Its position when it becomes live."""
        self.is_live = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._wake = asyncio.Event()

    def follows(self, project: str) -> bool:
        """Return whether it wants to know of a project at all."""
        return self.project is None or self.project == project

    def place(self, position: Position) -> str:
        """Return a position as this reader is told it: a number where there is only one project."""
        return format_cursor(position) if self.project is None else str(position.get(self.project, 0))

    def add(self, event: Event, directory: str | None = None) -> None:
        """Add an event of the server itself to what waits."""
        data = _encode(event)
        self.put(frame(b'{"payload":%b}' % data if self.directory is None else data, directory))

    def put(self, event: bytes) -> None:
        """Add to what waits. A reader for which too much waits is ended: it comes again and goes on where it was."""
        if self.ended.done():
            return
        if len(self._frames) >= SERVER_STREAM_EVENTS.value or (
            self._frames and self._size + len(event) > SERVER_STREAM_BYTES.value
        ):
            self.end()
            return
        self._frames.append(event)
        self._size += len(event)
        self._wake.set()

    def end(self) -> None:
        """End the stream; what waits for it is dropped."""
        self.is_live = False
        self._frames.clear()
        self._size = 0
        if not self.ended.done():
            self.ended.set_result(None)

    async def take(self) -> bytes:
        """Wait for events and take those that wait, up to a chunk."""
        while not self._frames:
            self._wake.clear()
            await self._wake.wait()
        frames = [self._frames.popleft()]
        size = len(frames[0])
        while self._frames and size + len(self._frames[0]) <= SERVER_STREAM_CHUNK.value:
            size += len(self._frames[0])
            frames.append(self._frames.popleft())
        self._size -= size
        return b"".join(frames)

    async def beat(self, seconds: float) -> None:
        """Show again and again that the stream is open, for ever."""
        while True:
            await asyncio.sleep(seconds if self._beat is None else min(seconds, self._beat))
            self.add(ServerHeartbeat())


def frame(data: bytes, directory: str | None) -> bytes:
    """Return one event of a stream; `directory`: the position with it."""
    return b"data: %b\n\n" % data if directory is None else b"id: %b\ndata: %b\n\n" % (directory.encode(), data)


def wrap_event(directory: str | None, project: str, data: bytes) -> bytes:
    """Put an event into what the stream of all directories wraps it in."""
    where = b"" if directory is None else b'"directory":%b,' % _encode(directory)
    return b'{%b"project":%b,"payload":%b}' % (where, _encode(project), data)
