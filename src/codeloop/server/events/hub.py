"""The hub of the event streams: follows each open store once, and passes each event, encoded once,
to subscribers.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing
from pathlib import Path

from codeloop.app.app import App
from codeloop.config.paths import find_paths
from codeloop.schema.bounds.server import (
    SERVER_HEARTBEAT,
    SERVER_STREAM_CHUNK,
    SERVER_STREAM_PACE,
    SERVER_STREAM_WRITE,
    SERVER_STREAMS,
)
from codeloop.schema.errors import GapError
from codeloop.schema.event import (
    Event,
    StampedEvent,
)
from codeloop.schema.live_events import (
    GlobalDisposed,
    ProjectUpdated,
    Resync,
    ServerConnected,
    ServerResync,
)
from codeloop.schema.wire import encode_json
from codeloop.server.events.cursor import Position, format_cursor
from codeloop.server.events.followed_store import (
    FollowedStore,
    SessionDirectories,
    get_project_id,
)
from codeloop.server.events.subscriber import Subscriber, format_frame, wrap_event
from codeloop.store.followers import read_event_range
from codeloop.store.store import Store

Translate = Callable[[StampedEvent, str | None], bytes]
"""Translates an event of a project, with its directory, to frames of version 2."""
log = logging.getLogger("codeloop.server")

_EVENTS_BEFORE_PAUSE = 500
"""Events that are delivered before other tasks of the event loop get to run."""


class Hub:
    """Delivers the events of an App's projects to subscribers, one for each open stream.
    Close it before the App.

    Stores are followed, and kept open, only while there are subscribers. `heartbeat_seconds`:
    seconds from one to the next; `write_timeout`: seconds after which the stream of a
    client that reads nothing ends.
    """

    def __init__(self, app: App) -> None:
        self.heartbeat_seconds = SERVER_HEARTBEAT.seconds
        self.write_timeout = SERVER_STREAM_WRITE.seconds
        self._app = app
        self._subscribers: set[Subscriber] = set()
        self._sources: dict[str, FollowedStore] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._start_position: Position = {}
        """The last event of each project when this process first opened it."""
        self._directories = SessionDirectories()
        self._disposal_id = ""
        self._is_closed = False
        self.open_translator: Callable[[Store], Translate] | None = None
        """Opens a translation to the events of version 2; None: nobody has asked for those yet."""
        self._translators: dict[str, Translate] = {}
        """The translations by project, while somebody follows version 2."""
        self.logs: set[object] = set()
        """The streams of version 2 that follow the log of a session."""
        self.on_close: list[Callable[[], None]] = []
        """What else ends with the streams."""
        self.end_signal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once the server ends."""
        app.stores.subscribe(self._on_open)
        app.add_follower_check(self.is_watched)

    @property
    def is_full(self) -> bool:
        """Whether no more subscribers are accepted."""
        return self._is_closed or len(self._subscribers) + len(self.logs) >= SERVER_STREAMS.value

    def add_subscriber(
        self, subscriber: Subscriber, position: Position | None, *, has_bad_position: bool = False
    ) -> None:
        """Add a subscriber, which gets all events from now on.

        `position`: the last events that its client has seen; None: it starts now.
        `has_bad_position`: the
        client sent a position that can't be parsed. Raises StoreError.
        """
        # First, so that a store that is opened below is followed.
        self._subscribers.add(subscriber)
        with ExitStack() as on_failure:
            on_failure.callback(self.remove_subscriber, subscriber)
            for store in self._app.stores.list_open_stores():
                self._follow_store(store)
            reason = self._open_projects(position or {})
            if has_bad_position:
                reason = "The position that was sent is not a position in the events. Read the state again."
            if position is None or reason:
                position = self._get_present_position(subscriber)
            subscriber.sent_position = position
            # Before the first event, whose `id` has the projects that this adds to the position.
            ahead = self._find_source_ahead(subscriber)
            subscriber.add_event(
                ServerConnected(), subscriber.format_position(subscriber.sent_position)
            )
            if reason:
                self._resync(subscriber, reason)
            # Else `stream_chunks` first replays what the subscriber has missed.
            subscriber.is_live = ahead is None
            on_failure.pop_all()
        self._app.update_file_watches()

    def remove_subscriber(self, subscriber: Subscriber) -> None:
        """End a subscriber's stream and forget it."""
        self._subscribers.discard(subscriber)
        subscriber.end()
        self._app.update_file_watches()
        if not self._follows_version2():
            self._translators.clear()
        if not self._subscribers:
            self._sources.clear()
            for task in self._tasks:
                task.cancel()

    async def close(self) -> None:
        """End every stream, and accept no more subscribers."""
        self._is_closed = True
        for close in self.on_close:
            close()
        if not self.end_signal.done():
            self.end_signal.set_result(None)
        for subscriber in list(self._subscribers):
            self.remove_subscriber(subscriber)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stream_chunks(self, subscriber: Subscriber) -> AsyncGenerator[bytes, None]:
        """Yield the chunks for an added subscriber, for ever: stored events, then new ones.
        Raises StoreError.
        """
        heartbeat_task = asyncio.create_task(subscriber.add_heartbeats(self.heartbeat_seconds))
        try:
            yield await subscriber.take_chunk()
            # A loop, since new events are stored during a replay. Events for a live subscriber go
            # to its queue, so that they are not read from the store again.
            while not subscriber.is_live and (source := self._find_source_ahead(subscriber)):
                async for chunk in self._replay(subscriber, source):
                    yield chunk
            subscriber.is_live = True
            while True:
                yield await subscriber.take_chunk()
                # The next chunk then holds all events of this interval: one write in place of many.
                await asyncio.sleep(SERVER_STREAM_PACE.seconds)
        finally:
            heartbeat_task.cancel()

    # Events that were stored before a subscriber was added

    def _get_present_position(self, subscriber: Subscriber) -> Position:
        return {
            project: source.seq
            for project, source in self._sources.items()
            if subscriber.follows(project)
        }

    def _find_source_ahead(self, subscriber: Subscriber) -> FollowedStore | None:
        """Return a source with events after the subscriber's position;
        None: the subscriber has seen all of them.

        A project that the subscriber's position does not name is added to it, at the last event
        that was stored when this process first opened the project.
        """
        for project, source in self._sources.items():
            if not subscriber.follows(project):
                continue
            subscriber.sent_position.setdefault(project, self._start_position[project])
            if subscriber.sent_position[project] < source.seq:
                return source
        return None

    def _open_projects(self, position: Position) -> str:
        """Open the projects of a position; return why a subscriber can't continue from
        the position, "" if it can.
        """
        for project, seq in position.items():
            if project not in self._sources:
                self._open_project_store(project)
            source = self._sources.get(project)
            # A number beyond the last one is not from this database.
            if source is None or seq > source.store.read_last_seq():
                return f"The project {project} has no event {seq}. Read the state again."
        return ""

    def _open_project_store(self, project: str) -> None:
        path = find_paths(self._app.startup.environment).get_project_folder(project) / "codeloop.db"
        if path.exists():
            stores = self._app.stores
            # `_on_open` has run by now: the store is followed, which keeps it open.
            stores.release(stores.open(path))

    async def _replay(
        self, subscriber: Subscriber, source: FollowedStore
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events that a source has stored since the subscriber's position, in chunks."""
        project, until = source.project, source.seq
        frames: list[bytes] = []
        size = 0
        try:
            for event in read_event_range(
                source.store.outbox, subscriber.sent_position[project], until + 1
            ):
                subscriber.sent_position[project] = event.seq or until
                directory = self._directories.find_directory(source.store, event)
                if subscriber.directory not in {None, directory}:
                    continue
                data = encode_json(event.event)
                if subscriber.directory is None:
                    data = wrap_event(directory, project, data)
                frames.append(
                    format_frame(data, subscriber.format_position(subscriber.sent_position))
                )
                size += len(frames[-1])
                if size > SERVER_STREAM_CHUNK.value:
                    yield b"".join(frames)
                    frames.clear()
                    size = 0
            subscriber.sent_position[project] = until
        # Events after the position have been deleted from the store.
        except GapError as error:
            self._resync(subscriber, str(error))
        if frames:
            yield b"".join(frames)

    def _resync(self, subscriber: Subscriber, reason: str) -> None:
        """Ask a client to read the state again, since it has missed events;
        the stream goes on from now.
        """
        subscriber.sent_position = self._get_present_position(subscriber)
        subscriber.add_event(
            ServerResync(properties=Resync(reason=reason)),
            subscriber.format_position(subscriber.sent_position),
        )

    # New events

    def is_watched(self, directory: Path) -> bool:
        """Return whether a subscriber follows the events of a directory."""
        return any(
            subscriber.directory in {None, str(directory)} for subscriber in self._subscribers
        )

    def _on_open(self, store: Store) -> None:
        """Follow a store that has just been opened."""
        # The first opening counts: a client that was away while the store was closed
        # must miss nothing of it.
        self._start_position.setdefault(get_project_id(store), store.read_last_seq())
        if self._subscribers:
            self._follow_store(store)

    def _follow_store(self, store: Store) -> None:
        """Follow a store, unless it is followed already."""
        if get_project_id(store) in self._sources:
            return
        source = FollowedStore(store)
        self._sources[source.project] = source
        # Counts as a user of the store, until `_on_end` releases it.
        self._app.stores.open(store.path)
        task = asyncio.create_task(self._deliver_events(source))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._on_end(source, task))

    def _on_end(self, source: FollowedStore, task: asyncio.Task[None]) -> None:
        """Release a store. If following it failed, end its subscribers,
        whose clients then connect again.
        """
        self._tasks.discard(task)
        self._app.stores.release(source.store)
        if task.cancelled():
            return
        log.error(
            "The event streams of the project %s have ended.",
            source.project,
            exc_info=task.exception(),
        )
        if self._sources.get(source.project) is source:
            del self._sources[source.project]
        for subscriber in self._subscribers:
            if subscriber.follows(source.project):
                subscriber.end()

    async def _deliver_events(self, source: FollowedStore) -> None:
        """Deliver the events of a store as they come, for ever."""
        while True:
            try:
                async with aclosing(source.store.follow(source.seq)) as events:
                    count = 0
                    async for event in events:
                        self._deliver(source, event)
                        count += 1
                        if count % _EVENTS_BEFORE_PAUSE == 0:
                            # Stored events come without a pause.
                            await asyncio.sleep(0)
            except GapError as error:
                # Other processes have written, and deleted, faster than we read: continue
                # with what is there now.
                source.seq = source.store.read_last_seq()
                for subscriber in self._subscribers:
                    if subscriber.is_live and subscriber.follows(source.project):
                        self._resync(subscriber, str(error))

    def _deliver(self, source: FollowedStore, stamped: StampedEvent) -> None:
        """Add an event to the queue of every live subscriber that follows its directory."""
        seq, event = stamped.seq, stamped.event
        if seq is not None:
            source.seq = seq
        directory = self._directories.find_directory(source.store, stamped)
        is_repetition = self._note_disposal(event)
        if not is_repetition:
            self._deliver_to_version2(source, stamped, directory)
        if all(each.is_version2 for each in self._subscribers):
            return
        try:
            data = encode_json(event)
        # The text has lone surrogates; one event must not end the streams of all clients.
        except UnicodeEncodeError:
            log.warning("An event whose text is not Unicode was left out: %s", type(event).__name__)
            return
        # Made when first needed, since an event is seldom read in both forms.
        directory_frame = global_frame = b""
        for subscriber in self._subscribers:
            # A client may be ahead of this task, by a replay or by its own position: it
            # has seen the event already.
            if (not subscriber.is_live or subscriber.is_version2) or (
                seq is not None and subscriber.sent_position.get(source.project, 0) >= seq
            ):
                continue
            if subscriber.directory is None:
                if not is_repetition:
                    if not global_frame:
                        where = "global" if isinstance(event, ProjectUpdated) else directory
                        position = None if seq is None else self._format_present_cursor()
                        global_frame = format_frame(
                            wrap_event(where, source.project, data), position
                        )
                    subscriber.add_frame(global_frame)
            elif subscriber.directory == directory:
                directory_frame = directory_frame or format_frame(
                    data, None if seq is None else str(seq)
                )
                subscriber.add_frame(directory_frame)

    def _deliver_to_version2(
        self, source: FollowedStore, stamped: StampedEvent, directory: str | None
    ) -> None:
        """Translate an event for those who follow version 2, if there are any."""
        if self.open_translator is None or not self._follows_version2():
            return
        translate = self._translators.get(source.project)
        if translate is None:
            translate = self._translators[source.project] = self.open_translator(source.store)
        self.add_to_version2(translate(stamped, directory))

    def _follows_version2(self) -> bool:
        return any(each.is_version2 for each in self._subscribers)

    def add_to_version2(self, frames: bytes) -> None:
        """Send events that only version 2 has to those who follow it."""
        for subscriber in list(self._subscribers):
            if frames and subscriber.is_version2 and subscriber.is_live:
                subscriber.add_frame(frames)

    def _format_present_cursor(self) -> str:
        return format_cursor({project: source.seq for project, source in self._sources.items()})

    def _note_disposal(self, event: Event) -> bool:
        """Note the disposal of all projects; return whether it is noted already,
        False for other events.

        Every project publishes it, and a subscriber of all directories gets it only once.
        """
        if not isinstance(event, GlobalDisposed):
            return False
        before, self._disposal_id = self._disposal_id, event.id
        return before == event.id
