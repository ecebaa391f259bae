"""A project as clients see it: folders, settings, tools, language servers, memory;
and the state of the server.
"""

from typing import Any, Literal

from codeloop.schema.operation import Constant, NoArguments, Operation
from codeloop.schema.resources import ProjectInfo
from codeloop.schema.wire import JSON, Wire


class ProjectDirectory(Wire):
    """A directory in which sessions of a project were held."""

    directory: str
    strategy: str | None = None


class ProjectId(Wire):
    """Names a project."""

    project_id: str


class PathInfo(Wire):
    """The folders in use, as absolute paths. `state` and `config` hold codeloop's own files."""

    home: str
    state: str
    config: str
    worktree: str
    directory: str


class FolderQuery(Wire):
    """Names a folder of the server's machine, absolute or from "~"; empty: the user's home.
    `prefix`: how the names of the folders in it begin, in upper or lower case.
    """

    path: str = ""
    prefix: str = ""


class Folder(Wire):
    """A folder, by its absolute path. `is_repository`: git's data is in it."""

    name: str
    path: str
    is_repository: bool


class FolderListing(Wire):
    """The visible folders in a folder, by name. `parent`: empty for the root.
    `is_cut`: there are more.
    """

    path: str
    parent: str
    folders: list[Folder]
    is_cut: bool


class LocatedProject(Wire):
    """A project as a location names it: its id and the top of its work tree, twice."""

    id: str
    directory: str
    canonical: str


class LocationInfo(Wire):
    """Where a request's directory is."""

    directory: str
    project: LocatedProject


class WriteLog(Wire):
    """A line for the server's log."""

    service: str
    level: Literal["debug", "info", "warn", "error"]
    message: str
    extra: JSON | None = None


class ToolListQuery(Wire):
    """Asks for the tools that a model is offered."""

    provider: str
    model: str


class ToolListItem(Wire):
    """A tool as the model sees it; `parameters` is a JSON schema."""

    id: str
    description: str
    parameters: Any


class ExperimentalCapabilities(Wire):
    """What this server can do beyond the contract's base."""

    background_subagents: bool


class ConsoleState(Wire):
    """The state of OpenCode's own service; here always empty."""

    console_managed_providers: list[str]
    switchable_org_count: int


class LSPStatus(Wire):
    """A language server that runs, or that has failed: `error` says why."""

    id: str
    name: str
    root: str
    status: Literal["connected", "error"]
    error: str | None = None


class FormatterStatus(Wire):
    """A program that formats files."""

    name: str
    extensions: list[str]
    enabled: bool


class MemoryNote(Wire):
    """A note of the project's memory. `stale`: which of its files have changed since its commit;
    "": none.

    OpenCode's API has no memory. `file`: relative to the top of the work tree;
    `problem`: why its head can't be read.
    """

    name: str
    file: str
    about: list[str]
    commit: str
    stale: str
    problem: str
    text: str


MEMORY_LIST = Operation(
    "memory.list", "GET", "/memory", NoArguments, list[MemoryNote], "project.memory:list_notes"
)
PATH_GET = Operation("path.get", "GET", "/path", NoArguments, PathInfo, "project.project:get_paths")
PROJECT_LIST = Operation(
    "project.list",
    "GET",
    "/project",
    NoArguments,
    list[ProjectInfo],
    "project.project:list_projects",
)
PROJECT_CURRENT = Operation(
    "project.current",
    "GET",
    "/project/current",
    NoArguments,
    ProjectInfo,
    "project.project:get_current_project",
)
PROJECT_DIRECTORIES = Operation(
    "project.directories",
    "GET",
    "/project/{projectID}/directories",
    ProjectId,
    list[ProjectDirectory],
    "project.project:list_directories",
)
FOLDER_LIST = Operation(
    "folder.list", "GET", "/folder", FolderQuery, FolderListing, "project.folders:list_folders"
)
LOG = Operation("app.log", "POST", "/log", WriteLog, bool, "project.log:write_log")
LSP_STATUS = Operation(
    "lsp.status", "GET", "/lsp", NoArguments, list[LSPStatus], "project.lsp:list_servers"
)
FORMATTER_STATUS = Operation(
    "formatter.status",
    "GET",
    "/formatter",
    NoArguments,
    list[FormatterStatus],
    "project.formatters:list_formatters",
)
LOCATION_GET = Operation(
    "v2.location.get",
    "GET",
    "/api/location",
    NoArguments,
    LocationInfo,
    "project.project:get_location",
)
TOOL_IDS = Operation(
    "tool.ids",
    "GET",
    "/experimental/tool/ids",
    NoArguments,
    list[str],
    "project.tools:list_tool_ids",
)
TOOL_LIST = Operation(
    "tool.list",
    "GET",
    "/experimental/tool",
    ToolListQuery,
    list[ToolListItem],
    "project.tools:list_tools",
)
CAPABILITIES = Operation(
    "experimental.capabilities.get",
    "GET",
    "/experimental/capabilities",
    NoArguments,
    ExperimentalCapabilities,
    Constant(ExperimentalCapabilities(background_subagents=False)),
)
CONSOLE = Operation(
    "experimental.console.get",
    "GET",
    "/experimental/console",
    NoArguments,
    ConsoleState,
    Constant(ConsoleState(console_managed_providers=[], switchable_org_count=0)),
)
WORKSPACE_LIST = Operation(
    "experimental.workspace.list",
    "GET",
    "/experimental/workspace",
    NoArguments,
    list[JSON],
    Constant([]),
)
WORKSPACE_STATUS = Operation(
    "experimental.workspace.status",
    "GET",
    "/experimental/workspace/status",
    NoArguments,
    list[JSON],
    Constant([]),
)
