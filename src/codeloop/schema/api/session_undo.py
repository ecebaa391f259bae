"""Undoing and redoing what turns did to a session and its files, and the changes that they made."""

from typing import Annotated, Literal

import msgspec

from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.message import Session, SnapshotFileDiff
from codeloop.schema.operation import Operation
from codeloop.schema.wire import Wire


class SessionDiffQuery(Wire):
    """What the turn of one prompt changed; without it, what a revert has undone;
    `whole`: what all turns changed.
    """

    session_id: str
    message_id: str | None = None
    whole: bool = False


class FileConflict(Wire):
    """A file (relative to the work tree) that was not touched, and why."""

    path: str
    reason: str


class FileDone(Wire):
    """What was done to a file (relative to the work tree); `moved`: here from `source`."""

    path: str
    what: Literal["content", "mode", "created", "deleted", "moved"]
    source: str | None = None


class FilesOutcome(Wire):
    """What happened to the files: restored, already as they should be, not touched.
    `done`: how each was restored.
    """

    restored: list[str]
    unchanged: list[str]
    conflicts: list[FileConflict]
    done: list[FileDone] = []


class RevertSession(Wire):
    """Takes a session back to before a message, or to before the step that holds a part of it.

    `dry_run`: only report what would happen to the files.
    """

    session_id: str
    message_id: str
    part_id: str | None = None
    dry_run: bool = False


class UnrevertSession(SessionId):
    """Restores a reverted session with its files. `dry_run` as in RevertSession."""

    dry_run: bool = False


class RevertedSession(Session):
    """The session, and what happened to its files (beyond OpenCode's API). Only an answer;
    never stored.
    """

    outcome: FilesOutcome | None = None


class UndoFiles(SessionId):
    """Undoes what the last turn did to some files or folders (paths relative to
    the session's directory).

    The conversation stays. `redo`: does it again.
    `dry_run`: only reports what would happen to the files.
    """

    files: Annotated[list[str], msgspec.Meta(min_length=1)]
    redo: bool = False
    dry_run: bool = False


class UndoneFiles(Wire):
    """The prompt of the turn that was undone (absent: there is nothing to undo),
    and what happened to the files.
    """

    outcome: FilesOutcome
    message_id: str | None = None


SESSION_REVERT = Operation(
    "session.revert",
    "POST",
    "/session/{sessionID}/revert",
    RevertSession,
    RevertedSession,
    "changes.revert:revert_session",
)
SESSION_UNREVERT = Operation(
    "session.unrevert",
    "POST",
    "/session/{sessionID}/unrevert",
    UnrevertSession,
    RevertedSession,
    "changes.revert:unrevert_session",
)
UNDO_FILES = Operation(
    "session.undoFiles",
    "POST",
    "/session/{sessionID}/undo",
    UndoFiles,
    UndoneFiles,
    "changes.undo_files:undo_files",
)
SESSION_DIFF = Operation(
    "session.diff",
    "GET",
    "/session/{sessionID}/diff",
    SessionDiffQuery,
    list[SnapshotFileDiff],
    "changes.diff:diff_session",
)
