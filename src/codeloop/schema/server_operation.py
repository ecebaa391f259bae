"""Operations that only clients of a server use, so that a short run does not load them."""

from typing import cast

from codeloop.schema.api.project import ProjectInfo, Worktree
from codeloop.schema.api.server_operations import (
    AppliedPatch,
    ApplyPatch,
    ConsoleOrgs,
    CreateWorkspace,
    GlobalSession,
    ListGlobalSessions,
    MoveSession,
    ReadSyncHistory,
    RemoveWorkspace,
    ReplayEvents,
    StealSession,
    SwitchOrg,
    TuiResponse,
    UpdateGlobalConfig,
    UpdateProject,
    Upgrade,
    UpgradeRefused,
    WarpSession,
    WorkspaceAdapter,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.api.worktrees import (
    CopyName,
    CopyToWorktree,
    CreateProjectCopy,
    CreateWorktree,
    GenerateCopyName,
    MergeWorktree,
    ProjectCopy,
    RefreshProjectCopies,
    RemoveProjectCopy,
    RemoveWorktree,
    ResetWorktree,
    WorktreeDiff,
    WorktreeMerge,
    WorktreeName,
    WorktreeOverview,
)
from codeloop.schema.operation import AnyOperation, NoArguments, Operation
from codeloop.schema.wire import JSON

GLOBAL_CONFIG_GET = Operation("global.config.get", "GET", "/global/config", NoArguments, JSON)
GLOBAL_CONFIG_UPDATE = Operation(
    "global.config.update", "PATCH", "/global/config", UpdateGlobalConfig, JSON, body="config"
)
UPGRADE = Operation("global.upgrade", "POST", "/global/upgrade", Upgrade, UpgradeRefused)
GIT_INIT = Operation("project.initGit", "POST", "/project/git/init", NoArguments, ProjectInfo)
PROJECT_UPDATE = Operation("project.update", "PATCH", "/project/{projectID}", UpdateProject, ProjectInfo)
VCS_DIFF_RAW = Operation("vcs.diff.raw", "GET", "/vcs/diff/raw", NoArguments, str)
VCS_APPLY = Operation("vcs.apply", "POST", "/vcs/apply", ApplyPatch, AppliedPatch)
WORKTREE_LIST = Operation("worktree.list", "GET", "/experimental/worktree", NoArguments, list[str])
WORKTREE_CREATE = Operation("worktree.create", "POST", "/experimental/worktree", CreateWorktree, Worktree)
WORKTREE_REMOVE = Operation("worktree.remove", "DELETE", "/experimental/worktree", RemoveWorktree, bool, has_body=True)
WORKTREE_RESET = Operation("worktree.reset", "POST", "/experimental/worktree/reset", ResetWorktree, bool)
WORKTREE_OVERVIEW = Operation("worktree.overview", "GET", "/worktree", NoArguments, list[WorktreeOverview])
WORKTREE_DIFF = Operation("worktree.diff", "GET", "/worktree/{name}/diff", WorktreeName, WorktreeDiff)
WORKTREE_MERGE = Operation("worktree.merge", "POST", "/worktree/{name}/merge", MergeWorktree, WorktreeMerge)
WORKTREE_REBASE = Operation("worktree.rebase", "POST", "/worktree/{name}/rebase", WorktreeName, WorktreeMerge)
WORKTREE_COPY = Operation("worktree.copy", "POST", "/worktree/{name}/copy", CopyToWorktree, list[str])
_COPY = "/experimental/project/{projectID}/copy"
COPY_CREATE = Operation("v2.projectCopy.create", "POST", _COPY, CreateProjectCopy, ProjectCopy)
COPY_REMOVE = Operation("v2.projectCopy.remove", "DELETE", _COPY, RemoveProjectCopy, type(None), has_body=True)
COPY_REFRESH = Operation("v2.projectCopy.refresh", "POST", f"{_COPY}/refresh", RefreshProjectCopies, type(None))
COPY_NAME = Operation(
    "experimental.projectCopy.generateName", "POST", f"{_COPY}/generate-name", GenerateCopyName, CopyName
)
GLOBAL_SESSIONS = Operation(
    "experimental.session.list", "GET", "/experimental/session", ListGlobalSessions, list[GlobalSession]
)
SESSION_BACKGROUND = Operation(
    "experimental.session.background", "POST", "/experimental/session/{sessionID}/background", SessionId, bool
)
MOVE_SESSION = Operation(
    "experimental.controlPlane.moveSession",
    "POST",
    "/experimental/control-plane/move-session",
    MoveSession,
    type(None),
)
CONSOLE_ORGS = Operation("experimental.console.listOrgs", "GET", "/experimental/console/orgs", NoArguments, ConsoleOrgs)
CONSOLE_SWITCH = Operation("experimental.console.switchOrg", "POST", "/experimental/console/switch", SwitchOrg, bool)
SYNC_START = Operation("sync.start", "POST", "/sync/start", NoArguments, bool)
SYNC_REPLAY = Operation("sync.replay", "POST", "/sync/replay", ReplayEvents, JSON)
SYNC_STEAL = Operation("sync.steal", "POST", "/sync/steal", StealSession, JSON)
SYNC_HISTORY = Operation("sync.history.list", "POST", "/sync/history", ReadSyncHistory, list[JSON], body="known")
TUI_NEXT = Operation("tui.control.next", "GET", "/tui/control/next", NoArguments, JSON)
TUI_RESPONSE = Operation("tui.control.response", "POST", "/tui/control/response", TuiResponse, bool, body="body")
_WORKSPACE = "/experimental/workspace"
WORKSPACE_ADAPTERS = Operation(
    "experimental.workspace.adapter.list", "GET", f"{_WORKSPACE}/adapter", NoArguments, list[WorkspaceAdapter]
)
WORKSPACE_CREATE = Operation("experimental.workspace.create", "POST", _WORKSPACE, CreateWorkspace, JSON)
WORKSPACE_SYNC = Operation(
    "experimental.workspace.syncList", "POST", f"{_WORKSPACE}/sync-list", NoArguments, type(None)
)
WORKSPACE_WARP = Operation("experimental.workspace.warp", "POST", f"{_WORKSPACE}/warp", WarpSession, type(None))
WORKSPACE_REMOVE = Operation("experimental.workspace.remove", "DELETE", f"{_WORKSPACE}/{{id}}", RemoveWorkspace, JSON)

SERVER_OPERATIONS: tuple[AnyOperation, ...] = tuple(
    cast("AnyOperation", row) for row in globals().values() if isinstance(row, Operation)
)
"""Every row of this table; of two paths that match a request, the first counts."""
