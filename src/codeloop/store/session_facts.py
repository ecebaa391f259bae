"""The facts about its environment that each session was started with, as its system prompt shows them."""

from codeloop.store.database import Database


class SessionFacts:
    """The facts about the environment of each session, as JSON; the first that are stored for a session stay."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def find(self, session_id: str) -> str | None:
        """Return the facts of a session, or None if none are stored."""
        row = self._db.fetch_one("SELECT data FROM facts WHERE session_id = ?", session_id)
        return row[0] if row else None

    def add(self, session_id: str, facts: str) -> None:
        """Store the facts of a session, unless it already has facts."""
        self._db.execute("INSERT OR IGNORE INTO facts (session_id, data) VALUES (?, ?)", (session_id, facts))
