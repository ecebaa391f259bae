"""An overview of a database's sessions, and the state of each: running, waiting for the user,
or how it ended.
"""

import msgspec
from msgspec import Struct

from codeloop.schema.api.session_reports import SessionOverview, SessionStanding
from codeloop.schema.jobs import read_running_jobs
from codeloop.schema.message import Session
from codeloop.store.database import Database
from codeloop.store.lease import Leases
from codeloop.store.packing import unpack

_decode_session = msgspec.json.Decoder(Session).decode
_ABORT_ERROR = "MessageAbortedError"


class _MessageTime(Struct, frozen=True):
    completed: int | None = None


class _MessageError(Struct, frozen=True):
    name: str = ""
    data: dict[str, object] = {}


class _LastMessage(Struct, frozen=True):
    """The fields of a session's last message from which its state is read."""

    role: str
    time: _MessageTime = _MessageTime()
    error: _MessageError | None = None
    finish: str | None = None


class _OpenRequest(Struct, frozen=True):
    """The fields of an open permission or question from which its text is made."""

    permission: str = ""
    patterns: list[str] = []
    questions: list[dict[str, object]] = []

    @property
    def text(self) -> str:
        """The question in a few words."""
        if self.questions:
            return str(self.questions[0].get("question", ""))
        return f"{self.permission} {' '.join(self.patterns)}".strip()


_decode_last_message = msgspec.json.Decoder(_LastMessage).decode
_decode_request = msgspec.json.Decoder(_OpenRequest).decode


def list_session_overviews(db: Database, limit: int) -> list[SessionOverview]:
    """Return an overview of each session that is neither a subagent nor archived,
    newest change first.

    `limit`: the number of sessions that are read, archived ones included.
    """
    leases = Leases(db)
    running = {
        row[0] for row in db.fetch_all("SELECT session_id FROM lease") if leases.is_held(row[0])
    }
    waiting = _read_open_requests(db)
    last_message_sql = (
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY created DESC, id DESC LIMIT 1"
    )
    session_overviews: list[SessionOverview] = []
    for (data,) in db.fetch_all(
        "SELECT data FROM session WHERE parent_id IS NULL ORDER BY updated DESC LIMIT ?", limit
    ):
        session = _decode_session(data)
        if session.time.archived:
            continue
        row = db.fetch_one(last_message_sql, session.id)
        last_message = _decode_last_message(unpack(row[1], session.id, row[0])) if row else None
        is_running = session.id in running
        # Questions of a killed process don't count, since nobody waits for their answers.
        question = waiting.get(session.id, "") if is_running else ""
        state: SessionStanding
        if question:
            state = "waits"
        elif is_running:
            state = "running"
        else:
            state = _classify_idle_session(last_message)
        session_overviews.append(
            SessionOverview(
                id=session.id,
                title=session.title,
                directory=session.directory,
                project_id=session.project_id,
                state=state,
                updated=session.time.updated,
                cost=session.cost or 0.0,
                detail=question or (_get_error_text(last_message) if state == "failed" else ""),
                jobs=read_running_jobs(session.metadata) if session.metadata else [],
            )
        )
    return session_overviews


def _classify_idle_session(last_message: _LastMessage | None) -> SessionStanding:
    """Return the state of an idle session."""
    if last_message is None:
        return "new"
    if last_message.error is not None:
        return "interrupted" if last_message.error.name == _ABORT_ERROR else "failed"
    is_unanswered = last_message.role == "user"
    return "interrupted" if is_unanswered or last_message.time.completed is None else "finished"


def _get_error_text(last_message: _LastMessage | None) -> str:
    error = last_message.error if last_message is not None else None
    return str(error.data.get("message", error.name)) if error is not None else ""


def _read_open_requests(db: Database) -> dict[str, str]:
    """Return the texts of open questions, by the id of the topmost parent
    of the session that asks.
    """
    rows = db.fetch_all("SELECT session_id, data FROM permission WHERE reply IS NULL")
    rows += db.fetch_all("SELECT session_id, data FROM question WHERE open = 1")
    waiting: dict[str, str] = {}
    for session_id, data in rows:
        top_id = _find_top_session(db, session_id)
        waiting.setdefault(top_id, _decode_request(data).text or "a question")
    return waiting


def _find_top_session(db: Database, session_id: str) -> str:
    """Return the id of a session's topmost parent, or its own when it has no parent."""
    while True:
        row = db.fetch_one("SELECT parent_id FROM session WHERE id = ?", session_id)
        if row is None or not row[0]:
            return session_id
        session_id = row[0]
