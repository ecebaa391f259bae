"""The hub: follows every open store once, and hands each event, serialised once, to all clients that want it."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path

import msgspec

from codeloop.app.app import App
from codeloop.config.paths import find_paths
from codeloop.schema.event import Event, SessionCreated, SessionDeleted, SessionUpdated, Stamped, session_of
from codeloop.schema.limits import (
    SERVER_HEARTBEAT,
    SERVER_SESSIONS,
    SERVER_STREAM_BYTES,
    SERVER_STREAM_CHUNK,
    SERVER_STREAM_EVENTS,
    SERVER_STREAM_PACE,
    SERVER_STREAMS,
)
from codeloop.schema.live import (
    GlobalDisposed,
    ProjectUpdated,
    Resync,
    ServerConnected,
    ServerHeartbeat,
    ServerResync,
)
from codeloop.server.position import Position, written
from codeloop.store.database import StoreError
from codeloop.store.follow import GapError, stored
from codeloop.store.store import Store

log = logging.getLogger("codeloop.server")

_encode = msgspec.json.Encoder().encode
_TURN = 500
"""Events handed out before others have their turn."""


class Client:
    """One stream: what waits to be written to it. `directory` None: it follows all of them."""

    def __init__(self, directory: str | None = None, project: str | None = None) -> None:
        self.directory = directory
        self.project = project
        self.at: Position = {}
        """Where it stands while it reads what was stored before."""
        self.is_live = False
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._wake = asyncio.Event()

    def follows(self, project: str) -> bool:
        """Tell whether the client wants to know of a project at all."""
        return self.project is None or self.project == project

    def place(self, position: Position) -> str:
        """Give a position as this client is told it: a number where there is only one project."""
        return written(position) if self.project is None else str(position.get(self.project, 0))

    def frame(self, event: Event, place: str | None = None) -> bytes:
        """Give an event of the server itself as it stands in this client's stream."""
        data = _encode(event)
        return _frame(data if self.directory is not None else b'{"payload":%b}' % data, place)

    def put(self, frame: bytes) -> None:
        """Add to what waits. A client for which too much waits is ended: it comes again and goes on where it was."""
        if self.ended.done():
            return
        full = len(self._frames) >= SERVER_STREAM_EVENTS.value
        if full or (self._frames and self._size + len(frame) > SERVER_STREAM_BYTES.value):
            self.end()
            return
        self._frames.append(frame)
        self._size += len(frame)
        self._wake.set()

    def end(self) -> None:
        """End the stream, with what waits for it."""
        self._frames.clear()
        self._size = 0
        if not self.ended.done():
            self.ended.set_result(None)

    async def take(self) -> bytes:
        """Wait for events and take those that wait, up to a chunk."""
        while not self._frames:
            self._wake.clear()
            await self._wake.wait()
        size, count = 0, 0
        for frame in self._frames:
            if count and size + len(frame) > SERVER_STREAM_CHUNK.value:
                break
            size += len(frame)
            count += 1
        self._size -= size
        return b"".join(self._frames.popleft() for _ in range(count))


class Source:
    """An open store that is followed. `seq`: the last stored event that the live clients were given."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.project = project_of(store)
        self.seq = store.last_seq()


class Directories:
    """Knows the directory of an event: that of its session."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, store: Store, stamped: Stamped) -> str | None:
        """Give the directory; None: the session is gone. Raises StoreError."""
        if stamped.directory is not None:
            return stamped.directory
        match stamped.event:
            case SessionCreated(properties=p) | SessionUpdated(properties=p) | SessionDeleted(properties=p):
                return self._remember(p.session_id, p.info.directory)
            case event:
                session_id = session_of(event)
        if session_id is None or session_id in self._known:
            return self._known.get(session_id or "")
        session = store.find_session(session_id)
        return None if session is None else self._remember(session_id, session.directory)

    def _remember(self, session_id: str, directory: str) -> str:
        self._known[session_id] = directory
        if len(self._known) > SERVER_SESSIONS.value:
            del self._known[next(iter(self._known))]
        return directory


class Hub:
    """Hands the events of an App's projects to the clients that follow them. Close it before the App.

    Stores are followed, and kept open, only while there are clients. `heartbeat`: seconds.
    """

    def __init__(self, app: App, heartbeat: float = SERVER_HEARTBEAT.seconds) -> None:
        self.heartbeat = heartbeat
        self._app = app
        self._clients: set[Client] = set()
        self._sources: dict[str, Source] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun: Position = {}
        """Where each project stood when this process first opened it."""
        self._directories = Directories()
        self._disposed = ""
        self._is_closed = False
        for store in app.stores.all():
            self._opened(store)
        app.stores.opened = self._opened
        app.watched = self._is_watched

    @property
    def is_full(self) -> bool:
        """Tell whether no more clients are taken."""
        return self._is_closed or len(self._clients) >= SERVER_STREAMS.value

    async def enter(self, client: Client, position: Position | None, *, is_lost: bool = False) -> None:
        """Take a client in; from now on nothing passes it by.

        `position`: what it has seen; None: it begins with now. `is_lost`: it has seen something, nobody knows what.
        Raises StoreError.
        """
        self._clients.add(client)
        with ExitStack() as on_failure:
            on_failure.callback(self.leave, client)
            for store in self._app.stores.all():
                self._attach(store)
            reason = self._trouble(position) if position else ""
            await asyncio.sleep(0)  # lets new followers begin
            here = self._here(client)
            client.at = here if position is None else {**self._first(client), **position}
            client.put(client.frame(ServerConnected(), client.place(here if reason or is_lost else client.at)))
            if reason or is_lost:
                self._resync(client, reason or "This is no position in the events.")
            client.is_live = self._ahead(client) is None
            on_failure.pop_all()

    def leave(self, client: Client) -> None:
        """Forget a client."""
        self._clients.discard(client)
        client.is_live = False
        client.end()
        if not self._clients:
            self._sources.clear()
            for task in self._tasks:
                task.cancel()

    async def close(self) -> None:
        """End every stream, and take no more clients."""
        self._is_closed = True
        for client in list(self._clients):
            self.leave(client)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def chunks(self, client: Client) -> AsyncGenerator[bytes, None]:
        """Give what a client is to read, for ever: what was stored since it was last here, then what happens.

        Raises StoreError.
        """
        beating = asyncio.create_task(self._beat(client))
        try:
            yield await client.take()
            while source := self._ahead(client):
                async for chunk in self._replay(client, source):
                    yield chunk
            client.is_live = True
            while True:
                yield await client.take()
                await asyncio.sleep(SERVER_STREAM_PACE.seconds)
        finally:
            beating.cancel()

    async def _beat(self, client: Client) -> None:
        while True:
            await asyncio.sleep(self.heartbeat)
            client.put(client.frame(ServerHeartbeat()))

    # Replay

    def _here(self, client: Client) -> Position:
        return {project: source.seq for project, source in self._sources.items() if client.follows(project)}

    def _first(self, client: Client) -> Position:
        """Give what a client without a position in a project has seen of it: all that was before this process."""
        return {project: self._begun[project] for project in self._sources if client.follows(project)}

    def _ahead(self, client: Client) -> Source | None:
        """Give a source that has gone on since the client was last here."""
        for project, source in self._sources.items():
            if client.follows(project) and client.at.setdefault(project, self._begun[project]) < source.seq:
                return source
        return None

    def _trouble(self, position: Position) -> str:
        """Open what a position names; give the reason why it can't be gone on from, or an empty text."""
        for project, seq in position.items():
            source = self._sources.get(project) or self._open(project)
            if source is None:
                return f"There is no project {project}."
            if seq > source.store.last_seq():
                return f"The project {project} has no event {seq}."
        return ""

    def _open(self, project: str) -> Source | None:
        path = find_paths(self._app.startup.environment).project(project) / "codeloop.db"
        if path.exists():
            stores = self._app.stores
            stores.release(stores.open(path))  # it is attached by now, which keeps it open
        return self._sources.get(project)

    async def _replay(self, client: Client, source: Source) -> AsyncGenerator[bytes, None]:
        """Give what a source has stored since the client was last here, in chunks."""
        project, until = source.project, source.seq
        frames: list[bytes] = []
        size = 0
        try:
            for stamped in stored(source.store, client.at[project], until + 1):
                client.at[project] = stamped.seq or until
                directory = self._directories.of(source.store, stamped)
                if client.directory not in {None, directory}:
                    continue
                place = client.place(client.at)
                data = _encode(stamped.event)
                whole = data if client.directory is not None else _envelope(directory, source, stamped, data)
                frames.append(_frame(whole, place))
                size += len(frames[-1])
                if size > SERVER_STREAM_CHUNK.value:
                    yield b"".join(frames)
                    frames.clear()
                    size = 0
        except GapError as error:
            yield b"".join(frames)
            self._resync(client, str(error))
            return
        client.at[project] = until
        yield b"".join(frames)

    def _resync(self, client: Client, reason: str) -> None:
        """Tell a client that it has to read the state again; it goes on from now."""
        client.at = self._here(client)
        client.put(client.frame(ServerResync(properties=Resync(reason=reason)), client.place(client.at)))

    # Live

    def _is_watched(self, directory: Path) -> bool:
        return any(client.directory in {None, str(directory)} for client in self._clients)

    def _opened(self, store: Store) -> None:
        """Hear of a store that was not open."""
        self._begun.setdefault(project_of(store), store.last_seq())
        if self._clients:
            self._attach(store)

    def _attach(self, store: Store) -> None:
        """Follow a store, unless it is followed."""
        if project_of(store) in self._sources:
            return
        source = Source(store)
        self._sources[source.project] = source
        stores = self._app.stores
        stores.open(store.path)
        task = asyncio.create_task(self._follow(source))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: stores.release(store))

    async def _follow(self, source: Source) -> None:
        while True:
            try:
                async with aclosing(source.store.follow(source.seq)) as events:
                    count = 0
                    async for stamped in events:
                        self._deliver(source, stamped)
                        count += 1
                        if count % _TURN == 0:
                            await asyncio.sleep(0)
            except GapError as error:
                source.seq = source.store.last_seq()
                for client in self._live(source):
                    self._resync(client, str(error))
            except StoreError as error:
                log.error("The event streams of a project end: %s", error)
                self._sources.pop(source.project, None)
                for client in list(self._clients):
                    if client.follows(source.project):
                        client.end()
                return

    def _live(self, source: Source) -> Iterator[Client]:
        return (client for client in self._clients if client.is_live and client.follows(source.project))

    def _deliver(self, source: Source, stamped: Stamped) -> None:
        """Hand an event to every live client that wants it."""
        if stamped.seq is not None:
            source.seq = stamped.seq
        try:
            data = _encode(stamped.event)
        except UnicodeEncodeError:
            log.warning("an event with text that is no Unicode was left out: %s", type(stamped.event).__name__)
            return
        directory = self._directories.of(source.store, stamped)
        again = isinstance(stamped.event, GlobalDisposed) and stamped.event.id == self._disposed
        if isinstance(stamped.event, GlobalDisposed):
            self._disposed = stamped.event.id
        place = None if stamped.seq is None else str(stamped.seq)
        own = whole = b""
        for client in self._clients:
            if not client.is_live:
                continue
            if client.directory is None:
                if not again:
                    whole = whole or self._whole(source, stamped, directory, data)
                    client.put(whole)
            elif client.directory == directory:
                own = own or _frame(data, place)
                client.put(own)

    def _whole(self, source: Source, stamped: Stamped, directory: str | None, data: bytes) -> bytes:
        position = {project: each.seq for project, each in self._sources.items()}
        place = None if stamped.seq is None else written(position)
        return _frame(_envelope(directory, source, stamped, data), place)


def project_of(store: Store) -> str:
    """Give the id of the project that a store holds."""
    return store.path.parent.name


def _envelope(directory: str | None, source: Source, stamped: Stamped, data: bytes) -> bytes:
    """Put an event into what the stream of all directories wraps it in."""
    if isinstance(stamped.event, ProjectUpdated):
        directory = "global"
    where = b"" if directory is None else b'"directory":%b,' % _encode(directory)
    return b'{%b"project":%b,"payload":%b}' % (where, _encode(source.project), data)


def _frame(data: bytes, place: str | None) -> bytes:
    """Give one event of a stream."""
    return b"data: %b\n\n" % data if place is None else b"id: %b\ndata: %b\n\n" % (place.encode(), data)
