"""The project facts in every request of a session, as of its start."""

from codeloop.store.database import Database


class SessionFacts:
    """One text a session; the first one that is kept stays."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def of(self, session_id: str) -> str | None:
        """Return the stored facts as JSON text; None: there are none yet."""
        row = self._db.fetch_one("SELECT data FROM facts WHERE session_id = ?", session_id)
        return row[0] if row else None

    def keep(self, session_id: str, facts: str) -> None:
        """Keep the facts of a session that has none yet."""
        self._db.execute("INSERT OR IGNORE INTO facts (session_id, data) VALUES (?, ?)", (session_id, facts))
