"""Undo and redo on the wire: `session.revert` and `session.unrevert`."""

from codeloop.schema.message import Session
from codeloop.schema.operation import OfOneSession, Operation
from codeloop.schema.wire import Wire


class RevertSession(Wire):
    """Takes a session back to before a message, or to before the step that holds a part of it.

    `dry_run`: only tell what would become of the files.
    """

    session_id: str
    message_id: str
    part_id: str | None = None
    dry_run: bool = False


class UnrevertSession(OfOneSession):
    """Takes a reverted session forward again, with its files. `dry_run` as in RevertSession."""

    dry_run: bool = False


class FileConflict(Wire):
    """A file (relative to the work tree) that was left as it is, and why."""

    path: str
    reason: str


class FilesOutcome(Wire):
    """What became of the files: put back, already as wanted, left alone."""

    restored: list[str]
    unchanged: list[str]
    conflicts: list[FileConflict]


class RevertedSession(Session):
    """The session, and (ours, not the reference's) what became of its files. Only ever an answer; never stored."""

    outcome: FilesOutcome | None = None


SESSION_REVERT = Operation("session.revert", "POST", "/session/{sessionID}/revert", RevertSession, RevertedSession)
SESSION_UNREVERT = Operation(
    "session.unrevert", "POST", "/session/{sessionID}/unrevert", UnrevertSession, RevertedSession
)
