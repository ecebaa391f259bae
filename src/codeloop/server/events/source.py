"""A source: one open store that the streams show, and the directories of its events."""

from codeloop.schema.event import SessionCreated, SessionDeleted, SessionUpdated, Stamped, session_of
from codeloop.schema.limits import SERVER_SESSIONS
from codeloop.store.store import Store


class Source:
    """An open store that is followed. `seq`: the last stored event that the live readers were given."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.project = project_of(store)
        self.seq = store.last_seq()


class Directories:
    """Knows the directory of an event: that of its session."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, store: Store, stamped: Stamped) -> str | None:
        """Return the directory; None: the session is gone. Raises StoreError."""
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


def project_of(store: Store) -> str:
    """Return the id of the project that a store holds."""
    return store.path.parent.name
