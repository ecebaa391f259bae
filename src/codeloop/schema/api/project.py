"""A project as clients see it: folders, settings, tools, language servers, memory; and the state of the server."""

from typing import Any, Literal

from codeloop.schema.wire import JSON, Wire


class ProjectTime(Wire):
    """Milliseconds since the epoch."""

    created: int
    updated: int
    initialized: int | None = None


class ProjectIcon(Wire):
    """How a project is shown: the URL of a picture, one that overrides it, a colour."""

    url: str | None = None
    override: str | None = None
    color: str | None = None


class ProjectCommands(Wire):
    """Shell lines of a project; `start` prepares a new work tree."""

    start: str | None = None


class ProjectInfo(Wire):
    """A project. Outside a repository: id "global", worktree "/". `sandboxes`: work trees that were made for it."""

    id: str
    worktree: str
    time: ProjectTime
    sandboxes: list[str]
    vcs: Literal["git"] | None = None
    name: str | None = None
    icon: ProjectIcon | None = None
    commands: ProjectCommands | None = None


class Worktree(Wire):
    """A work tree that was made for a project; `directory` is absolute.

    Beyond OpenCode's API: `base`, the branch or commit that it began from; `asks`, ignored files that are copied only
    when a user says so; `notes`, for the user.
    """

    name: str
    directory: str
    branch: str | None = None
    base: str | None = None
    asks: list[str] = []
    notes: list[str] = []


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


class LocatedProject(Wire):
    """A project as a location names it: its id and the top of its work tree."""

    id: str
    directory: str


class LocationInfo(Wire):
    """Where a request's directory is."""

    directory: str
    project: LocatedProject


class Health(Wire):
    """The server answers."""

    healthy: bool
    version: str


class UpdateConfig(Wire):
    """Writes settings into the project's configuration file."""

    config: JSON


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
    """A note of the project's memory. `stale`: which of its files have changed since its commit; "": none.

    OpenCode's API has no memory. `file`: relative to the top of the work tree; `problem`: why its head can't be read.
    """

    name: str
    file: str
    about: list[str]
    commit: str
    stale: str
    problem: str
    text: str
