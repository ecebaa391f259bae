"""Handlers of operations in OpenCode's API that codeloop does not support: they refuse, or return a constant.

A client gets the reason and the alternative, instead of an unknown route.
"""

from typing import NoReturn

from codeloop import __version__
from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.schema import server_operation as operation
from codeloop.schema.api.server_operations import (
    ConsoleOrgs,
    CreateWorkspace,
    MoveSession,
    ReadSyncHistory,
    RemoveWorkspace,
    ReplayEvents,
    StealSession,
    SwitchOrg,
    TuiResponse,
    Upgrade,
    UpgradeRefused,
    WarpSession,
    WorkspaceAdapter,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments

_NO_WORKSPACES_MESSAGE = (
    "There are no workspaces besides directories. Make a work tree at /experimental/worktree and name its directory "
    "in requests."
)
_NO_QUESTIONS_MESSAGE = "A terminal UI is told what to do by events (`tui.*` at /event) and is asked for nothing."


@handles(operation.UPGRADE)
async def refuse_upgrade(_project: Project, args: Upgrade) -> UpgradeRefused:
    """Return a refusal: a running server does not replace itself."""
    return UpgradeRefused(
        success=False,
        error=f"codeloop {__version__} stays as it is: stop the server, then install {args.target} the way it was "
        "installed.",
    )


@handles(operation.MOVE_SESSION)
async def refuse_move(_project: Project, _args: MoveSession) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError(
        "BadRequest",
        "A session stays in the directory that its rules and its undo history belong to. `codeloop export` and "
        "`codeloop import` copy it to another one.",
    )


@handles(operation.CONSOLE_ORGS)
async def list_orgs(_project: Project, _args: NoArguments) -> ConsoleOrgs:
    """Return no accounts: codeloop has no service of its own."""
    return ConsoleOrgs(orgs=[])


@handles(operation.CONSOLE_SWITCH)
async def refuse_switch(_project: Project, _args: SwitchOrg) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError("BadRequest", "There are no accounts to switch between: codeloop has no service of its own.")


@handles(operation.SESSION_BACKGROUND)
async def detach_subagents(project: Project, args: SessionId) -> bool:
    """Return False: no subagent is detached from its call. Raises OperationError when there is no such session."""
    project.store.get_session(args.session_id)
    return False


@handles(operation.SYNC_START)
async def confirm_sync(_project: Project, _args: NoArguments) -> bool:
    """Return True: there are no workspaces to synchronise."""
    return True


@handles(operation.SYNC_REPLAY)
async def refuse_replay(_project: Project, _args: ReplayEvents) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError(
        "BadRequest", "Sessions are not made from another server's events. POST what `export` wrote to /session/import."
    )


@handles(operation.SYNC_STEAL)
async def refuse_steal(_project: Project, _args: StealSession) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError("BadRequest", _NO_WORKSPACES_MESSAGE)


@handles(operation.SYNC_HISTORY)
async def refuse_history(_project: Project, _args: ReadSyncHistory) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError(
        "BadRequest", "Stored events are not kept for ever. Read /session/{id}/message, then follow /event from there."
    )


@handles(operation.TUI_NEXT)
async def refuse_next_question(_project: Project, _args: NoArguments) -> NoReturn:
    """Refuse at once, where OpenCode waits for a question. Raises OperationError."""
    raise OperationError("BadRequest", _NO_QUESTIONS_MESSAGE)


@handles(operation.TUI_RESPONSE)
async def refuse_answer(_project: Project, _args: TuiResponse) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError("BadRequest", _NO_QUESTIONS_MESSAGE)


@handles(operation.WORKSPACE_ADAPTERS)
async def list_adapters(_project: Project, _args: NoArguments) -> list[WorkspaceAdapter]:
    """Return no adapters: there are no workspaces."""
    return []


@handles(operation.WORKSPACE_CREATE)
async def refuse_workspace(_project: Project, _args: CreateWorkspace) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError("BadRequest", _NO_WORKSPACES_MESSAGE)


@handles(operation.WORKSPACE_SYNC)
async def sync_workspaces(_project: Project, _args: NoArguments) -> None:
    """Do nothing: there are no workspaces to register."""


@handles(operation.WORKSPACE_REMOVE)
async def refuse_workspace_removal(_project: Project, _args: RemoveWorkspace) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError("BadRequest", _NO_WORKSPACES_MESSAGE)


@handles(operation.WORKSPACE_WARP)
async def refuse_warp(_project: Project, _args: WarpSession) -> NoReturn:
    """Refuse. Raises OperationError."""
    raise OperationError("BadRequest", _NO_WORKSPACES_MESSAGE)
