"""Requests for stored sessions and their results: lists, pages, forks, imports, searches, reverts."""

from base64 import b64encode
from typing import Annotated, Any, Literal

import msgspec

from codeloop.schema.limits import SESSION_SEARCH_TEXT
from codeloop.schema.message import Message, Session, SessionModel
from codeloop.schema.part import Part
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, Count, Natural, Wire


class SessionId(Wire):
    """Names a session."""

    session_id: str


class MessageId(Wire):
    """Names a message."""

    session_id: str
    message_id: str


class PartId(Wire):
    """Names a part."""

    session_id: str
    message_id: str
    part_id: str


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

    `path`: those at or below this directory of the work tree, "" for all; `scope="project"`: all. Else `directory`:
    those of exactly that directory; the top of a repository's work tree means all. `start`: changed at or after
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
    """A session as `export` writes it, read as it is: an object `info`, a list `messages` of `{info, parts}`."""

    info: Any
    messages: Any


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
    """The sessions that have stopped, and those (`left`) whose turns still ran some seconds later."""

    stopped: list[StoppedSession]
    left: list[StoppedSession]


class ListMessages(Wire):
    """The newest `limit` messages (all without it), or those older than the cursor `before`."""

    session_id: str
    limit: Count | None = None
    before: str | None = None


class MessageCursor(Wire):
    """The oldest message of a page: its id, and when it was created (ms since the epoch)."""

    id: str
    time: int


def make_cursor_of_page(oldest: Message) -> str:
    """Return the cursor of a page that begins with this message: what `before` takes for the page of older ones."""
    cursor = MessageCursor(id=oldest.id, time=oldest.time.created)
    return b64encode(msgspec.json.encode(cursor)).decode()


def make_cursor_before_time(time: int) -> str:
    """Return the cursor of the page of messages that were created before a time (ms since the epoch)."""
    return b64encode(msgspec.json.encode(MessageCursor(id="", time=time))).decode()


class UpdatePart(Wire):
    """Replaces the part with the same id."""

    session_id: str
    message_id: str
    part_id: str
    part: Part


class SearchSessions(Wire):
    """Searches this project's titles, prompts and answers for a text, ignoring case.

    Outside of repositories, a directory is its own project.
    """

    query: Annotated[str, msgspec.Meta(min_length=1, max_length=SESSION_SEARCH_TEXT.value)]
    limit: Count = 20


class Excerpt(Wire):
    """Where a text was found, with some words around it; `created` in ms since the epoch."""

    message_id: str
    part_id: str
    role: Literal["user", "assistant"]
    created: int
    text: str


class SessionHit(Wire):
    """A session in which a text was found: in its title, in its messages, or both."""

    session: Session
    in_title: bool
    excerpts: list[Excerpt]


class SearchResult(Wire):
    """Hits, newest change first. Not `complete`: there are more, or time ran out."""

    hits: list[SessionHit]
    complete: bool


TextKind = Literal["prompt", "answer", "reasoning", "tool", "summary"]


class FindInSession(Wire):
    """Searches everything in a session for a text, output of tools included.

    Case counts only if the text has a capital letter (smart case); a blank matches any blanks and line ends.
    """

    session_id: str
    query: Annotated[str, msgspec.Meta(min_length=1, max_length=SESSION_SEARCH_TEXT.value)]


class TextMatch(Wire):
    """One occurrence: its part, and its number within that part, from 0.

    `tool`: the tool whose call it is in, "" for none. `text`: some words around it. `created`: ms since the epoch.
    """

    message_id: str
    part_id: str
    ordinal: int
    kind: TextKind
    created: int
    text: str
    tool: str = ""


class TextMatches(Wire):
    """The occurrences, oldest first. `complete`: the search did not stop early."""

    found: list[TextMatch]
    complete: bool


class SessionDiffQuery(Wire):
    """What the turn of one prompt changed; without it, what a revert has undone; `whole`: what all turns changed."""

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
    """What happened to the files: restored, already as they should be, not touched. `done`: how each was restored."""

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
    """The session, and what happened to its files (beyond OpenCode's API). Only an answer; never stored."""

    outcome: FilesOutcome | None = None


class UndoFiles(SessionId):
    """Undoes what the last turn did to some files or folders (paths relative to the session's directory).

    The conversation stays. `redo`: does it again. `dry_run`: only reports what would happen to the files.
    """

    files: Annotated[list[str], msgspec.Meta(min_length=1)]
    redo: bool = False
    dry_run: bool = False


class UndoneFiles(Wire):
    """The prompt of the turn that was undone (absent: there is nothing to undo), and what happened to the files."""

    outcome: FilesOutcome
    message_id: str | None = None
