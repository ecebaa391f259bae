"""An open store that the hub follows, and the directories of its events."""

from codeloop.schema.bounds.server import SERVER_SESSIONS
from codeloop.schema.event import (
    SessionCreated,
    SessionDeleted,
    SessionUpdated,
    StampedEvent,
    get_session_id,
)
from codeloop.store.store import Store


class FollowedStore:
    """An open store that is followed. `seq`: the last stored event that was delivered
    to the live subscribers.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.project = get_project_id(store)
        self.seq = store.read_last_seq()


class SessionDirectories:
    """Finds the directory of an event: that of its session. Caches the directories of sessions."""

    def __init__(self) -> None:
        self._directories: dict[str, str] = {}

    def find_directory(self, store: Store, stamped: StampedEvent) -> str | None:
        """Return the directory of an event; None: it has none, or its session is gone.
        Raises StoreError.
        """
        if stamped.directory is not None:
            return stamped.directory
        match stamped.event:
            # These hold the session, which after a deletion is no longer in the store.
            case (
                SessionCreated(properties=p)
                | SessionUpdated(properties=p)
                | SessionDeleted(properties=p)
            ):
                return self._remember(p.session_id, p.info.directory)
            case event:
                session_id = get_session_id(event)
        if session_id is None or session_id in self._directories:
            return self._directories.get(session_id or "")
        session = store.find_session(session_id)
        return None if session is None else self._remember(session_id, session.directory)

    def _remember(self, session_id: str, directory: str) -> str:
        self._directories[session_id] = directory
        if len(self._directories) > SERVER_SESSIONS.value:
            # The oldest; it can be looked up again.
            del self._directories[next(iter(self._directories))]
        return directory


def get_project_id(store: Store) -> str:
    """Return the id of the project that a store holds."""
    return store.path.parent.name
