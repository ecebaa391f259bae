"""Live events, which are sent to clients and never stored: of a session, a directory,
the server.
"""

from typing import Literal

import msgspec

from codeloop.schema.errors import MessageError, Nothing
from codeloop.schema.ids import new_id
from codeloop.schema.message import SnapshotFileDiff
from codeloop.schema.resources import (
    ClientToolCall,
    LspFile,
    McpAddress,
    McpServerName,
    ProjectInfo,
    PtyEnd,
    PtyGone,
    PtyInfo,
    Worktree,
)
from codeloop.schema.wire import Wire


def _make_event_id() -> str:
    return new_id("evt")


class IdentifiedEvent(Wire, kw_only=True, tag_field="type"):
    """An event. Each has an id of its own, a `type` and its `properties`."""

    id: str = msgspec.field(default_factory=_make_event_id)


class Delta(Wire):
    """Properties of `message.part.delta`."""

    session_id: str
    message_id: str
    part_id: str
    field: Literal["text"]
    delta: str


class Idle(Wire, tag_field="type", tag="idle"):
    """No turn runs in the session."""


class Busy(Wire, tag_field="type", tag="busy"):
    """A turn runs in the session."""


class Retry(Wire, tag_field="type", tag="retry"):
    """A request is about to be tried again at `next` (ms since the epoch);
    attempt 0: it is sent in another way.
    """

    attempt: int
    message: str
    next: int


Status = Idle | Busy | Retry


class SessionState(Wire):
    """Properties of `session.status`."""

    session_id: str
    status: Status


class SessionRef(Wire):
    """Properties of events that only name a session."""

    session_id: str


class SessionFailure(Wire):
    """Properties of `session.error`."""

    session_id: str
    error: MessageError


class SessionDiffs(Wire):
    """Properties of `session.diff`."""

    session_id: str
    diff: list[SnapshotFileDiff]


class FilePath(Wire):
    """Properties of `file.edited`; absolute."""

    file: str


class Toast(Wire):
    """Properties of `tui.toast.show`: a message for the user that is not
    part of the conversation.
    """

    message: str
    variant: Literal["info", "success", "warning", "error"]
    title: str | None = None
    duration: int | None = None


class ExecutedCommand(Wire):
    """Properties of `command.executed`; `message_id`: the last answer."""

    name: str
    session_id: str
    arguments: str
    message_id: str


class PartDelta(IdentifiedEvent, tag="message.part.delta"):
    """More text of a text or reasoning part."""

    properties: Delta


class StatusChanged(IdentifiedEvent, tag="session.status"):
    """A session is idle, busy or waiting to try again."""

    properties: SessionState


class SessionIdle(IdentifiedEvent, tag="session.idle"):
    """A turn is over."""

    properties: SessionRef


class SessionCompacted(IdentifiedEvent, tag="session.compacted"):
    """From here on requests hold a summary in place of what was before."""

    properties: SessionRef


class SessionErrored(IdentifiedEvent, tag="session.error"):
    """A turn failed or was stopped; the error is stored in its message, too,
    unless it came outside of an answer.
    """

    properties: SessionFailure


class SessionDiff(IdentifiedEvent, tag="session.diff"):
    """Which changes a revert has undone."""

    properties: SessionDiffs


class ClientToolChanged(IdentifiedEvent, tag="session.tool"):
    """A client that offers tools is to carry out a call, or need not any more."""

    properties: ClientToolCall


class ToastShown(IdentifiedEvent, tag="tui.toast.show"):
    """A message is shown to the user."""

    properties: Toast


class FileEdited(IdentifiedEvent, tag="file.edited"):
    """A tool changed a file."""

    properties: FilePath


class CommandExecuted(IdentifiedEvent, tag="command.executed"):
    """A command's turn is over."""

    properties: ExecutedCommand


class WatchedFile(Wire):
    """Properties of `file.watcher.updated`; absolute."""

    file: str
    event: Literal["add", "change", "unlink"]


class FileWatched(IdentifiedEvent, tag="file.watcher.updated"):
    """A file of the work tree changed, whoever changed it."""

    properties: WatchedFile


class Branch(Wire):
    """Properties of `vcs.branch.updated`."""

    branch: str | None = None


class BranchUpdated(IdentifiedEvent, tag="vcs.branch.updated"):
    """Another branch is checked out."""

    properties: Branch


class ProjectUpdated(IdentifiedEvent, tag="project.updated"):
    """The name, icon or another property of a project changed."""

    properties: ProjectInfo


class PtyCreated(IdentifiedEvent, tag="pty.created"):
    """A terminal was opened."""

    properties: PtyInfo


class PtyUpdated(IdentifiedEvent, tag="pty.updated"):
    """A terminal was renamed or resized."""

    properties: PtyInfo


class PtyExited(IdentifiedEvent, tag="pty.exited"):
    """A terminal's process ended, and the terminal is gone."""

    properties: PtyEnd


class PtyDeleted(IdentifiedEvent, tag="pty.deleted"):
    """A terminal was closed by a client."""

    properties: PtyGone


class PromptText(Wire):
    """Properties of `tui.prompt.append`."""

    text: str


class PromptAppended(IdentifiedEvent, tag="tui.prompt.append"):
    """Text for the input of an attached terminal UI."""

    properties: PromptText


class TuiCommand(Wire):
    """Properties of `tui.command.execute`: the name of a command of the terminal UI;
    None: one that is not known.
    """

    command: str | None = None


class CommandSent(IdentifiedEvent, tag="tui.command.execute"):
    """An attached terminal UI is to run one of its own commands."""

    properties: TuiCommand


class SessionSelected(IdentifiedEvent, tag="tui.session.select"):
    """An attached terminal UI is to show a session."""

    properties: SessionRef


class DirectoryRef(Wire):
    """Properties of `server.instance.disposed`; absolute."""

    directory: str


class ServerConnected(IdentifiedEvent, tag="server.connected"):
    """The stream is open: the first event of every stream."""

    properties: Nothing = msgspec.field(default_factory=Nothing)


class ServerHeartbeat(IdentifiedEvent, tag="server.heartbeat"):
    """The stream is still open; sent at intervals, also between other events."""

    properties: Nothing = msgspec.field(default_factory=Nothing)


class Resync(Wire):
    """Properties of `server.resync`, an event beyond OpenCode's API: why events are missing."""

    reason: str


class ServerResync(IdentifiedEvent, tag="server.resync"):
    """Not all events that a client has not seen can be sent to it: it has
    to read the state again.
    """

    properties: Resync


class InstanceDisposed(IdentifiedEvent, tag="server.instance.disposed"):
    """A directory's configuration is read again: what a client knows of agents,
    models and commands is out of date.
    """

    properties: DirectoryRef


class GlobalDisposed(IdentifiedEvent, tag="global.disposed"):
    """As InstanceDisposed, for every directory."""

    properties: Nothing = msgspec.field(default_factory=Nothing)


class McpToolsChanged(IdentifiedEvent, tag="mcp.tools.changed"):
    """An MCP server is in another state than before, or has other tools."""

    properties: McpServerName


class McpBrowserOpenFailed(IdentifiedEvent, tag="mcp.browser.open.failed"):
    """Somebody signs in at an MCP server, and there is no browser here: the user
    opens the address elsewhere.
    """

    properties: McpAddress


class LspUpdated(IdentifiedEvent, tag="lsp.updated"):
    """A language server is in another state than before."""

    properties: Nothing = msgspec.field(default_factory=Nothing)


class LspDiagnosed(IdentifiedEvent, tag="lsp.client.diagnostics"):
    """A language server reports other problems of a file than before."""

    properties: LspFile


class WorktreeReady(IdentifiedEvent, tag="worktree.ready"):
    """A further work tree was made, and its start commands have ended."""

    properties: Worktree


TuiEvent = PromptAppended | CommandSent | ToastShown | SessionSelected
"""The events that tell an attached terminal UI to do something."""
LiveEvent = (
    PartDelta
    | StatusChanged
    | SessionIdle
    | SessionCompacted
    | SessionErrored
    | SessionDiff
    | FileEdited
    | ToastShown
    | ClientToolChanged
    | CommandExecuted
    | FileWatched
    | BranchUpdated
    | McpToolsChanged
    | McpBrowserOpenFailed
    | LspUpdated
    | LspDiagnosed
    | ProjectUpdated
    | WorktreeReady
    | PtyCreated
    | PtyUpdated
    | PtyExited
    | PtyDeleted
    | PromptAppended
    | CommandSent
    | SessionSelected
    | ServerConnected
    | ServerHeartbeat
    | ServerResync
    | InstanceDisposed
    | GlobalDisposed
)


def make_session_diff(session_id: str, diff: list[SnapshotFileDiff]) -> SessionDiff:
    """Return the event that says which changes of a session are undone."""
    return SessionDiff(properties=SessionDiffs(session_id=session_id, diff=diff))
