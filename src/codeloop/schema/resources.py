"""What events and operations show: projects, work trees, terminals, calls of clients' tools,
MCP servers and language servers.
"""

from typing import Literal

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
    """A project. Outside a repository: id "global", worktree "/".
    `sandboxes`: work trees that were made for it.
    """

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

    Beyond OpenCode's API: `base`, the branch or commit that it began from; `asks`, ignored files
    that are copied only when a user says so; `notes`, for the user.
    """

    name: str
    directory: str
    branch: str | None = None
    base: str | None = None
    asks: list[str] = []
    notes: list[str] = []


class Pty(Wire):
    """A terminal. `cwd`: absolute; `exit_code` once the process has ended."""

    id: str
    title: str
    command: str
    args: list[str]
    cwd: str
    status: Literal["running", "exited"]
    pid: int
    exit_code: int | None = None


class PtyInfo(Wire):
    """Properties of the events that carry a whole terminal."""

    info: Pty


class PtyEnd(Wire):
    """Properties of `pty.exited`."""

    id: str
    exit_code: int


class PtyGone(Wire):
    """Properties of `pty.deleted`."""

    id: str


class ClientToolCall(Wire):
    """A call that a client must carry out (`called`), or no longer has to (`ended`).
    Paths are absolute.
    """

    request_id: str
    lease_id: str
    state: Literal["called", "ended"]
    session_id: str
    message_id: str
    call_id: str
    agent: str
    tool: str
    arguments: JSON
    directory: str
    worktree: str


class McpServerName(Wire):
    """Properties of `mcp.tools.changed`."""

    server: str


class McpAddress(Wire):
    """Properties of `mcp.browser.open.failed`."""

    mcp_name: str
    url: str


class LspFile(Wire):
    """Properties of `lsp.client.diagnostics`; the path is absolute."""

    server_id: str
    path: str
