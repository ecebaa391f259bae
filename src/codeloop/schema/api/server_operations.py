"""Operations that only clients of a server use; extensions can't request them."""

from typing import Literal

from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments, Operation
from codeloop.schema.resources import ProjectCommands, ProjectIcon, ProjectInfo
from codeloop.schema.wire import JSON, Count, Natural, Wire


class UpdateGlobalConfig(Wire):
    """Puts settings into the user's own configuration file; null takes one out."""

    config: JSON


class UpdateProject(Wire):
    """Changes how a project is shown, and the command that prepares a new work tree;
    what is left out stays.
    """

    project_id: str
    name: str | None = None
    icon: ProjectIcon | None = None
    commands: ProjectCommands | None = None


class ApplyPatch(Wire):
    """Applies a patch to the work tree, wholly or not at all;
    nothing is committed or added to the index.
    """

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


GLOBAL_CONFIG_GET = Operation(
    "global.config.get",
    "GET",
    "/global/config",
    NoArguments,
    JSON,
    "server_only.global_config:get_global_config",
)
GLOBAL_CONFIG_UPDATE = Operation(
    "global.config.update",
    "PATCH",
    "/global/config",
    UpdateGlobalConfig,
    JSON,
    "server_only.global_config:update_global_config",
    body="config",
)
GIT_INIT = Operation(
    "project.initGit",
    "POST",
    "/project/git/init",
    NoArguments,
    ProjectInfo,
    "server_only.project_details:init_repository",
)
PROJECT_UPDATE = Operation(
    "project.update",
    "PATCH",
    "/project/{projectID}",
    UpdateProject,
    ProjectInfo,
    "server_only.project_details:update_project",
)
VCS_DIFF_RAW = Operation(
    "vcs.diff.raw", "GET", "/vcs/diff/raw", NoArguments, str, "server_only.patch:make_patch"
)
VCS_APPLY = Operation(
    "vcs.apply", "POST", "/vcs/apply", ApplyPatch, AppliedPatch, "server_only.patch:apply_patch"
)
GLOBAL_SESSIONS = Operation(
    "experimental.session.list",
    "GET",
    "/experimental/session",
    ListGlobalSessions,
    list[GlobalSession],
    "server_only.all_sessions:list_sessions_of_all_projects",
)
