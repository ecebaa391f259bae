"""The store of a project's sessions, the only writer of its database.
Handlers, turns and the server use it.

`append` applies events to the state tables and numbers them, in one transaction; then it
passes them to the followers. `publish_live` only passes an event to the followers. All calls are
made on the event loop's thread: a transaction takes about 25 µs. `SharedStores` has one store for
each file, however many use it.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from codeloop.kit import fault_injection
from codeloop.schema.errors import SessionNotFound
from codeloop.schema.event import (
    Event,
    MessageRemoved,
    PartUpdated,
    SessionDeleted,
    StampedEvent,
    StoredEvent,
    get_session_id,
    make_session_updated,
)
from codeloop.schema.live_events import Idle, LiveEvent, Status, StatusChanged
from codeloop.schema.message import Session, Todo
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest
from codeloop.store.apply_event import apply_event, read_entries
from codeloop.store.conversation import Conversation, Entry
from codeloop.store.conversation_view import ConversationView
from codeloop.store.database import Database, StoreError
from codeloop.store.followers import Followers
from codeloop.store.lease import Leases
from codeloop.store.ledger import SpendingLedger
from codeloop.store.outbox import Outbox
from codeloop.store.queries import NO_LIMIT, Queries


class SessionFacts:
    """The facts about the environment of each session, as JSON;
    the first that are stored for a session stay.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    def find(self, session_id: str) -> str | None:
        """Return the facts of a session, or None if none are stored."""
        row = self._db.fetch_one("SELECT data FROM facts WHERE session_id = ?", session_id)
        return row[0] if row else None

    def add(self, session_id: str, facts: str) -> None:
        """Store the facts of a session, unless it already has facts."""
        self._db.execute(
            "INSERT OR IGNORE INTO facts (session_id, data) VALUES (?, ?)", (session_id, facts)
        )


_decode_session = msgspec.json.Decoder(Session).decode
_decode_todos = msgspec.json.Decoder(list[Todo]).decode
_decode_question = msgspec.json.Decoder(QuestionRequest).decode
_decode_request = msgspec.json.Decoder(PermissionRequest).decode

MAX_OPEN_VIEWS = 8
"""The number of conversations kept in memory; of more, the idle ones are dropped,
the least recently used first.
"""


class Store:
    """The state of one project, in one SQLite file.
    Raises StoreError (a CodeloopError) when the file fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = Database(path)
        self.leases = Leases(self._db)
        self.queries = Queries(self._db)
        self.facts = SessionFacts(self._db)
        self.ledger = SpendingLedger(self._db)
        self.permissions = self.queries.permissions
        self.statuses: dict[str, Status] = {}
        """The status of each session that is not idle, by session id,
        as this process last published it.
        """
        self.outbox = Outbox(self._db)
        """The stored events."""
        self._followers = Followers(self.outbox)
        self._views: OrderedDict[str, ConversationView] = OrderedDict()
        self._last_seen = self.read_last_seq()

    def close(self) -> None:
        """Close the file. Followers get no more events."""
        self._followers.close()
        self._views.clear()
        self._db.close()
        if self._db.has_deleted:
            # Most processes delete no session, so they don't load it.
            from codeloop.store.search_index import remove_index

            remove_index(self.path)

    def append(self, *events: StoredEvent) -> int:
        """Store events in one transaction and wake the followers;
        return the sequence number of the last event.
        """
        return self.append_made_events(lambda: events) if events else self.read_last_seq()

    def update_session(
        self, session_id: str, change: Callable[[Session], Session], *earlier_events: StoredEvent
    ) -> Session:
        """Read, change and store a session in one transaction, and return it;
        `earlier_events` are stored first.

        If `change` returns the same object, the session is not stored.
        Raises OperationError (NotFoundError).
        """
        result: list[Session] = []

        def make_events() -> Sequence[StoredEvent]:
            session = self.get_session(session_id)
            result.append(change(session))
            return (
                earlier_events
                if result[0] is session
                else (*earlier_events, make_session_updated(result[0]))
            )

        self.append_made_events(make_events)
        return result[0]

    def append_made_events(self, make_events: Callable[[], Sequence[StoredEvent]]) -> int:
        """Store the events that `make_events` returns, as `append` does.
        It is called inside the transaction.
        """
        with self._db.transaction():
            events = make_events()
            first = self.outbox.take_numbers(len(events)) if events else 0
            events = [
                self.outbox.stamp(event, number) for number, event in enumerate(events, first)
            ]
            for number, event in enumerate(events, first):
                is_kept = apply_event(self._db, event, number)
                fault_injection.pass_point("store.outbox")
                if not is_kept:
                    self.outbox.add(event, number)
        if not events:
            return self.read_last_seq()
        seq = self._db.last_number = first + len(events) - 1
        # Events of other processes have smaller numbers, so the views need them before these.
        self._apply_foreign_events(first)
        self._apply_to_views(events)
        self._last_seen = seq
        self._followers.publish(first, events)
        # The events are stored, so this must not fail; old ones can be removed next time.
        with suppress(StoreError):
            self.outbox.prune(first, seq)
        return seq

    def publish_live(self, event: LiveEvent | PartUpdated, directory: str | None = None) -> None:
        """Hand an event to the followers in this process without storing it, such as deltas,
        status, and progress.

        `directory`: for an event that belongs to no session,
        the absolute path of the directory that it is about.
        """
        if isinstance(event, StatusChanged):
            self.statuses.pop(event.properties.session_id, None)
            if not isinstance(event.properties.status, Idle):
                self.statuses[event.properties.session_id] = event.properties.status
        self._followers.publish_live(event, directory)

    def follow(
        self, after: int | None = None, *, session: str | None = None, root: str | None = None
    ) -> AsyncGenerator[StampedEvent, None]:
        """Yield every stored event after the number `after` (None: from now on), then live ones,
        without a gap.

        Stored events come from all processes, live ones from this one. `session`: only the events
        of this session, and of no session. `root`: of the events that are read from the database
        (earlier ones, and those of other processes), only those of this session, of its subagents,
        and of no session. Raises GapError when events after `after` were deleted.
        """
        return self._followers.follow(
            self.read_last_seq() if after is None else after, session, root
        )

    # Reading

    def get_session(self, session_id: str) -> Session:
        """Return a session. Raises OperationError (NotFoundError)."""
        session = self.find_session(session_id)
        if session is None:
            raise SessionNotFound(session_id)
        return session

    def find_session(self, session_id: str) -> Session | None:
        """Return a session, or None."""
        return self.queries.find_session(session_id)

    def walk_ancestors(self, session_id: str) -> Iterator[Session]:
        """Yield a session, then its parent, and so on up to the session without one;
        none: there is no such session.
        """
        seen: set[str] = set()
        current: str | None = session_id
        # The walk ends even if sessions name each other as parents.
        while (
            current is not None
            and current not in seen
            and (session := self.find_session(current)) is not None
        ):
            seen.add(current)
            yield session
            current = session.parent_id

    def list_family(self, session: Session) -> list[Session]:
        """Return a session and the sessions of all subagents below it, parents first."""
        family = [session]
        # The list grows while it is read, so that subagents of subagents are found.
        for each in family:
            family += self.list_sessions(parent=each.id, limit=NO_LIMIT)
        return family

    def list_sessions(
        self, *, directory: str | None = None, parent: str | None = None, limit: int = 100
    ) -> list[Session]:
        """Return sessions, newest change first: all, those of a directory,
        or the children of a session.
        """
        by_parent = (
            "SELECT data FROM session WHERE parent_id = ?2 AND (?1 IS NULL OR directory = ?1)"
        )
        by_directory = (
            "SELECT data FROM session WHERE (?1 IS NULL OR directory = ?1) AND ?2 IS NULL"
        )
        sql = (
            by_directory if parent is None else by_parent
        ) + " ORDER BY updated DESC, id LIMIT ?3"
        return [
            _decode_session(row[0]) for row in self._db.fetch_all(sql, directory, parent, limit)
        ]

    def read_conversation(self, session_id: str) -> Conversation:
        """Return a session with all messages and parts. Raises OperationError (NotFoundError)."""
        view, entries = self._open_view(session_id)
        if not view.is_trimmed:
            return view.take_snapshot()
        # The view was open already, and has dropped the entries that no request needs.
        if entries is None:
            entries = read_entries(self._db, session_id)
        return Conversation(view.session, tuple(entries))

    def read_context(self, session_id: str) -> Conversation:
        """Return a session with the entries that its next request may need (see
        `select_context_entries`).

        They are kept in memory, so that a second call takes microseconds.
        Raises OperationError (NotFoundError).
        """
        return self._open_view(session_id)[0].take_snapshot()

    def _open_view(self, session_id: str) -> tuple[ConversationView, list[Entry] | None]:
        """Return a session's view, and all entries if they were read to create it;
        None: the view was open already.
        """
        self._apply_foreign_events(None)
        view = self._views.get(session_id)
        entries: list[Entry] | None = None
        if view is None:
            entries = read_entries(self._db, session_id)
            view = self._views[session_id] = ConversationView(self.get_session(session_id), entries)
            idle = [
                each for each in self._views if each not in self.statuses and each != session_id
            ]
            for each in idle[: max(len(self._views) - MAX_OPEN_VIEWS, 0)]:
                del self._views[each]
        self._views.move_to_end(session_id)
        return view, entries

    def list_todos(self, session_id: str) -> list[Todo]:
        """Return the task list of a session, empty if it has none."""
        row = self._db.fetch_one("SELECT data FROM todo WHERE session_id = ?", session_id)
        return _decode_todos(row[0]) if row else []

    def list_pending_permissions(self, session_id: str | None = None) -> list[PermissionRequest]:
        """Return the permission requests that wait for an answer."""
        sql = "SELECT data FROM permission WHERE reply IS NULL AND (? IS NULL OR session_id = ?) ORDER BY id"
        return [_decode_request(row[0]) for row in self._db.fetch_all(sql, session_id, session_id)]

    def list_pending_questions(self, session_id: str | None = None) -> list[QuestionRequest]:
        """Return the model's questions that wait for an answer."""
        sql = "SELECT data FROM question WHERE open AND (? IS NULL OR session_id = ?) ORDER BY id"
        return [_decode_question(row[0]) for row in self._db.fetch_all(sql, session_id, session_id)]

    # The outbox

    def read_last_seq(self) -> int:
        """Return the highest sequence number that was ever given to an event."""
        return self.outbox.read_last_seq()

    # Keeping the views up to date

    def _apply_foreign_events(self, until: int | None) -> None:
        """Apply the events that other processes have stored since the last call to the open views.

        `until`: the sequence number before which to stop; None: apply all.
        """
        if until is None:
            until = self.read_last_seq() + 1
        if not self._views:
            self._last_seen = until - 1
            return
        while self._last_seen + 1 < until:
            batch = self.outbox.read_events(self._last_seen, until, self._views)
            # Events that no view has seen were pruned: the views are read anew
            # from the state tables.
            if self.outbox.read_pruned_seq() > self._last_seen:
                self._views.clear()
            self._apply_to_views(each.event for each in batch)
            self._last_seen = (batch[-1].seq if batch else None) or until - 1

    def _apply_to_views(self, events: Iterable[Event]) -> None:
        if not self._views:
            return
        for event in events:
            match event:
                case SessionDeleted(properties=p):
                    self._views.pop(p.session_id, None)
                case _:
                    view = self._views.get(get_session_id(event) or "")
                    if view is None:
                        continue
                    if view.is_trimmed and isinstance(event, MessageRemoved):
                        # If that was the summary, older entries are needed again:
                        # read the session anew.
                        del self._views[view.session.id]
                    else:
                        view.apply(event)


class SharedStores:
    """The open stores of a process. A store is closed once it was released as
    often as it was opened.
    """

    def __init__(self) -> None:
        self._open: dict[Path, tuple[Store, int]] = {}
        self._subscribers: list[Callable[[Store], None]] = []

    def subscribe(self, subscriber: Callable[[Store], None]) -> None:
        """Call `subscriber` with each open store, and with each store that is opened later."""
        self._subscribers.append(subscriber)
        for store in self.list_open_stores():
            subscriber(store)

    def open(self, path: Path) -> Store:
        """Return the store of a file, which is opened if needed. Raises StoreError."""
        open_store, users = self._open.get(path, (None, 0))
        store = open_store or Store(path)
        self._open[path] = (store, users + 1)
        if open_store is None:
            for subscriber in self._subscribers:
                subscriber(store)
        return store

    def release(self, store: Store) -> None:
        """Release a store; the last release closes it."""
        _, users = self._open[store.path]
        if users > 1:
            self._open[store.path] = (store, users - 1)
            return
        del self._open[store.path]
        store.close()

    def list_open_stores(self) -> tuple[Store, ...]:
        """Return the open stores."""
        return tuple(store for store, _ in self._open.values())
