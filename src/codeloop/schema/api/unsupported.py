"""Operations in OpenCode's API that codeloop does not support: they refuse, or return a constant.

A client gets the reason and the alternative, instead of an unknown route.
"""

from typing import Any, Literal

from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.operation import Constant, NoArguments, Operation, Unsupported
from codeloop.schema.wire import JSON, Natural, Wire


class Upgrade(Wire):
    """Asks for another version of the program."""

    target: str


class UpgradeRefused(Wire):
    """The program stays as it is; `error` says how it is upgraded."""

    success: Literal[False]
    error: str


class ConsoleOrgs(Wire):
    """Accounts of OpenCode's own service; here always none."""

    orgs: list[JSON]


class SwitchOrg(Wire):
    """Refused: there are no accounts of OpenCode's service here."""

    account_id: str
    org_id: str


class MoveDestination(Wire):
    """The directory that a session should move to."""

    directory: str


class MoveSession(Wire):
    """Refused: a session stays in the directory that its rules and its undo history belong to."""

    session_id: str
    destination: MoveDestination
    move_changes: bool = False


class ReplayEvents(Wire):
    """Refused: sessions can't be created from events of another server."""

    directory: str
    events: list[JSON]


class StealSession(Wire):
    """Refused: a session belongs to a directory, not to a workspace."""

    session_id: str


class ReadSyncHistory(Wire):
    """Refused: stored events are followed at `/event`, with the header `Last-Event-ID`."""

    known: dict[str, Natural]


class TuiResponse(Wire):
    """Refused: a terminal UI is not asked for answers."""

    body: Any


class WorkspaceAdapter(Wire):
    """A way to create workspaces; there is none here."""

    type: str
    name: str
    description: str


class CreateWorkspace(Wire):
    """Refused: a directory has one workspace; use a work tree instead."""

    type: str
    id: str | None = None
    branch: str | None = None
    extra: Any = None


class RemoveWorkspace(Wire):
    """Refused: there are no workspaces besides directories."""

    id: str


class WarpSession(Wire):
    """Refused: there are no workspaces that a session could move to."""

    session_id: str
    id: str | None = None
    copy_changes: bool = False


_NO_WORKSPACES = Unsupported(
    "There are no workspaces besides directories. Make a work tree at /experimental/worktree and name its directory "
    "in requests."
)
_NO_QUESTIONS = Unsupported(
    "A terminal UI is told what to do by events (`tui.*` at /event) and is asked for nothing."
)
_SESSION_STAYS = Unsupported(
    "A session stays in the directory that its rules and its undo history belong to. `codeloop export` and "
    "`codeloop import` copy it to another one."
)
_NO_ACCOUNTS = Unsupported(
    "There are no accounts to switch between: codeloop has no service of its own."
)
_NO_REPLAY = Unsupported(
    "Sessions are not made from another server's events. POST what `export` wrote to /session/import."
)
_NO_HISTORY = Unsupported(
    "Stored events are not kept for ever. Read /session/{id}/message, then follow /event from there."
)
_WORKSPACE = "/experimental/workspace"
UPGRADE = Operation(
    "global.upgrade",
    "POST",
    "/global/upgrade",
    Upgrade,
    UpgradeRefused,
    "server_only.unsupported:refuse_upgrade",
)
SESSION_BACKGROUND = Operation(
    "experimental.session.background",
    "POST",
    "/experimental/session/{sessionID}/background",
    SessionId,
    bool,
    "server_only.unsupported:detach_subagents",
)
MOVE_SESSION = Operation(
    "experimental.controlPlane.moveSession",
    "POST",
    "/experimental/control-plane/move-session",
    MoveSession,
    type(None),
    _SESSION_STAYS,
)
CONSOLE_ORGS = Operation(
    "experimental.console.listOrgs",
    "GET",
    "/experimental/console/orgs",
    NoArguments,
    ConsoleOrgs,
    Constant(ConsoleOrgs(orgs=[])),
)
CONSOLE_SWITCH = Operation(
    "experimental.console.switchOrg",
    "POST",
    "/experimental/console/switch",
    SwitchOrg,
    bool,
    _NO_ACCOUNTS,
)
SYNC_START = Operation("sync.start", "POST", "/sync/start", NoArguments, bool, Constant(value=True))
SYNC_REPLAY = Operation("sync.replay", "POST", "/sync/replay", ReplayEvents, JSON, _NO_REPLAY)
SYNC_STEAL = Operation("sync.steal", "POST", "/sync/steal", StealSession, JSON, _NO_WORKSPACES)
SYNC_HISTORY = Operation(
    "sync.history.list",
    "POST",
    "/sync/history",
    ReadSyncHistory,
    list[JSON],
    _NO_HISTORY,
    body="known",
)
TUI_NEXT = Operation(
    "tui.control.next", "GET", "/tui/control/next", NoArguments, JSON, _NO_QUESTIONS
)
TUI_RESPONSE = Operation(
    "tui.control.response",
    "POST",
    "/tui/control/response",
    TuiResponse,
    bool,
    _NO_QUESTIONS,
    body="body",
)
WORKSPACE_ADAPTERS = Operation(
    "experimental.workspace.adapter.list",
    "GET",
    f"{_WORKSPACE}/adapter",
    NoArguments,
    list[WorkspaceAdapter],
    Constant([]),
)
WORKSPACE_CREATE = Operation(
    "experimental.workspace.create", "POST", _WORKSPACE, CreateWorkspace, JSON, _NO_WORKSPACES
)
WORKSPACE_SYNC = Operation(
    "experimental.workspace.syncList",
    "POST",
    f"{_WORKSPACE}/sync-list",
    NoArguments,
    type(None),
    Constant(None),
)
WORKSPACE_WARP = Operation(
    "experimental.workspace.warp",
    "POST",
    f"{_WORKSPACE}/warp",
    WarpSession,
    type(None),
    _NO_WORKSPACES,
)
WORKSPACE_REMOVE = Operation(
    "experimental.workspace.remove",
    "DELETE",
    f"{_WORKSPACE}/{{id}}",
    RemoveWorkspace,
    JSON,
    _NO_WORKSPACES,
)
