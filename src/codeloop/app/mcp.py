"""The MCP servers of a project: its configuration made into a table of them, and their tools."""

from collections.abc import Callable

from codeloop.app.settings import ProjectSettings
from codeloop.app.toolbox import BUILTIN
from codeloop.extend.mcp.known.definition import definitions_of
from codeloop.extend.mcp.known.table import McpTable, RunningServers, TablePlace
from codeloop.extend.mcp.offer.tools import OWN, fit_of, tools_of
from codeloop.kit.lazy import load
from codeloop.schema.live_events import LiveEvent, McpServerName, McpToolsChanged
from codeloop.tool.tool import Tool
from codeloop.tool.toolbox import Fit
from codeloop.workspace.workspace import Workspace

_TAKEN = frozenset((*BUILTIN, *OWN, "batch", "skill", "websearch", "codesearch", "invalid"))
"""Names that no server's tool can have."""


def table_of(settings: ProjectSettings, workspace: Workspace, tell: Callable[[LiveEvent], None]) -> McpTable:
    """Return the configured servers. `tell` shows a change of one to every client."""

    def changed(server: str) -> None:
        tell(McpToolsChanged(properties=McpServerName(server=server)))

    definitions = definitions_of(settings.config.mcp, _scopes(settings))
    place = TablePlace(workspace, settings.paths, settings.home / "mcp", changed)
    return McpTable(definitions, place, _TAKEN, _start)


def serving(
    settings: ProjectSettings, workspace: Workspace, tell: Callable[[LiveEvent], None]
) -> tuple[tuple[Tool, ...], Fit]:
    """Return the tools of the configured servers, and what fits them to a window. They end with the work tree."""
    table = table_of(settings, workspace, tell)
    workspace.adopt(table)
    return offered(settings, table)


def offered(settings: ProjectSettings, table: McpTable) -> tuple[tuple[Tool, ...], Fit]:
    """Return the tools of the servers as they are known now, and what fits them to a window."""
    return tools_of(table), fit_of(table, settings.config.mcp_share)


def _start(table: McpTable) -> RunningServers:
    make: Callable[[McpTable], RunningServers] = load("extend.mcp.servers:McpServers")
    return make(table)


def _scopes(settings: ProjectSettings) -> dict[str, str]:
    """Return the project of each server that a file of the project defines."""
    origins = settings.loaded.provenance.values()
    named = (origin.keys[1] for origin in origins if origin.layer.is_project and origin.keys[:1] == ("mcp",))
    return {str(name): str(settings.place.root) for name in named}
