"""Arguments and results of the operations in `schema/server_operation.py`, which only a server's clients use."""

from typing import Any, Literal

from codeloop.schema.api.project import ProjectCommands, ProjectIcon
from codeloop.schema.message import Session
from codeloop.schema.wire import JSON, Count, Natural, Wire


class UpdateGlobalConfig(Wire):
    """Puts settings into the user's own configuration file; null takes one out."""

    config: JSON


class UpdateProject(Wire):
    """Changes how a project is shown, and the command that prepares a new work tree; what is left out stays."""

    project_id: str
    name: str | None = None
    icon: ProjectIcon | None = None
    commands: ProjectCommands | None = None


class ApplyPatch(Wire):
    """Applies a patch to the work tree, wholly or not at all; nothing is committed or added to the index."""

    patch: str


class AppliedPatch(Wire):
    """A patch was applied."""

    applied: Literal[True]


class ListGlobalSessions(Wire):
    """Sessions of every project, newest change first; archived ones only with `archived`.

    `cursor`: only sessions that were changed before this, in ms since the epoch.
    """

    roots: bool = False
    start: Natural | None = None
    cursor: Natural | None = None
    search: str | None = None
    limit: Count = 100
    archived: bool = False


class SessionProject(Wire):
    """The project of a session, in a list of sessions of many."""

    id: str
    worktree: str
    name: str | None = None


class GlobalSession(Session):
    """A session with its project."""

    project: SessionProject | None = None


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
