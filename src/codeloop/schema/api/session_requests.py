"""Requests for stored sessions and their results: lists, pages, forks, imports, searches,
reverts.
"""

from typing import Any, Literal

from codeloop.schema.live_events import Status
from codeloop.schema.message import Session, SessionModel, Todo
from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, Count, Natural, Wire


class SessionId(Wire):
    """Names a session."""

    session_id: str


class CreateSession(Wire):
    """Creates a session; all fields are optional."""

    parent_id: str | None = None
    title: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    metadata: JSON | None = None
    permission: list[PermissionRule] | None = None


class ListSessions(Wire):
    """Lists sessions of this project, newest change first.

    `path`: those at or below this directory of the work tree, "" for all; `scope="project"`: all.
    Else `directory`: those of exactly that directory; the top of a repository's work tree means
    all. `start`: changed at or after
    (ms since the epoch); `search`: in the title; `roots`: no child sessions.
    """

    directory: str | None = None
    path: str | None = None
    scope: Literal["project"] | None = None
    roots: bool = False
    start: Natural | None = None
    search: str | None = None
    limit: Count = 100


class ListAllSessions(Wire):
    """Sessions of every project, newest change first."""

    limit: Count = 100


class ArchiveTime(Wire):
    """When a session was archived (ms since the epoch); absent: it is not."""

    archived: Natural | None = None


class UpdateSession(Wire):
    """Changes the given fields. `permission` replaces the session's rules."""

    session_id: str
    title: str | None = None
    metadata: JSON | None = None
    permission: list[PermissionRule] | None = None
    time: ArchiveTime | None = None


class ForkSession(Wire):
    """Copies a session: all of it, or the messages before one."""

    session_id: str
    message_id: str | None = None


class ImportSession(Wire):
    """A session as `export` writes it, read as it is: an object `info`,
    a list `messages` of `{info, parts}`.
    """

    info: Any
    messages: Any


class MovedFolder(Wire):
    """A folder that is gone and may be this one now: it was the same,
    or has the same project or remote.

    `sessions`: how many it has. `notice`: the words that name the command that takes them over.
    """

    directory: str
    sessions: int
    notice: str


class AdoptFolder(Wire):
    """Takes over the sessions of a folder that is gone, because this one is it now.
    `directory`: absolute.
    """

    directory: str


class ImportedSession(Wire):
    """The session that was made; `notes` say what could not be imported."""

    session: Session
    messages: int
    notes: list[str] = []


class StoppedSession(Wire):
    """A session whose turn was running."""

    id: str
    title: str
    directory: str


class StoppedSessions(Wire):
    """The sessions that have stopped, and those (`left`) whose turns still
    ran some seconds later.
    """

    stopped: list[StoppedSession]
    left: list[StoppedSession]


SESSION_CREATE = Operation(
    "session.create", "POST", "/session", CreateSession, Session, "session.session:create_session"
)
SESSION_LIST = Operation(
    "session.list", "GET", "/session", ListSessions, list[Session], "session.session:list_sessions"
)
SESSION_STATUS = Operation(
    "session.status",
    "GET",
    "/session/status",
    NoArguments,
    dict[str, Status],
    "session.session:get_statuses",
)
SESSION_EVERYTHING = Operation(
    "session.everything",
    "GET",
    "/session/everything",
    ListAllSessions,
    list[Session],
    "session.session:list_all_sessions",
)
SESSION_MOVED = Operation(
    "session.movedFolders",
    "GET",
    "/session/moved-folders",
    NoArguments,
    list[MovedFolder],
    "session.adopt:list_moved_folders",
)
SESSION_ADOPT = Operation(
    "session.adopt",
    "POST",
    "/session/adopt",
    AdoptFolder,
    list[Session],
    "session.adopt:adopt_folder",
)
STOP_ALL = Operation(
    "session.stopAll",
    "POST",
    "/session/stop-all",
    NoArguments,
    StoppedSessions,
    "session.stop_all:stop_all",
)
SESSION_IMPORT = Operation(
    "session.import",
    "POST",
    "/session/import",
    ImportSession,
    ImportedSession,
    "session.import_:import_session",
)
SESSION_GET = Operation(
    "session.get", "GET", "/session/{sessionID}", SessionId, Session, "session.session:get_session"
)
SESSION_UPDATE = Operation(
    "session.update",
    "PATCH",
    "/session/{sessionID}",
    UpdateSession,
    Session,
    "session.session:update_session",
)
SESSION_DELETE = Operation(
    "session.delete",
    "DELETE",
    "/session/{sessionID}",
    SessionId,
    bool,
    "session.session:delete_session",
)
SESSION_CHILDREN = Operation(
    "session.children",
    "GET",
    "/session/{sessionID}/children",
    SessionId,
    list[Session],
    "session.session:list_children",
)
SESSION_TODO = Operation(
    "session.todo",
    "GET",
    "/session/{sessionID}/todo",
    SessionId,
    list[Todo],
    "session.session:get_todos",
)
SESSION_FORK = Operation(
    "session.fork",
    "POST",
    "/session/{sessionID}/fork",
    ForkSession,
    Session,
    "session.fork:fork_session",
)
SESSION_SHARE = Operation(
    "session.share",
    "POST",
    "/session/{sessionID}/share",
    SessionId,
    Session,
    "session.session:refuse_sharing",
)
SESSION_UNSHARE = Operation(
    "session.unshare",
    "DELETE",
    "/session/{sessionID}/share",
    SessionId,
    Session,
    "session.session:refuse_sharing",
)
