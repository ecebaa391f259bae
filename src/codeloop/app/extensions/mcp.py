"""The MCP servers of a project: makes their table from the configuration,
and offers their tools and resources.
"""

from collections.abc import Callable

from codeloop.app.settings import ProjectSettings
from codeloop.app.toolbox import BUILTIN_TOOLS
from codeloop.extend.mcp.cache.table import McpProject, McpTable, RunningServers
from codeloop.extend.mcp.definition import parse_definitions
from codeloop.extend.mcp.tools.server_tools import OWN_TOOLS, make_find, make_fit, make_tools
from codeloop.permission.defaults import list_named_permissions
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, TextPartInput
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import LiveEvent, McpToolsChanged, Toast, ToastShown
from codeloop.schema.part import ResourceSource
from codeloop.schema.resources import McpServerName
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult
from codeloop.tool.toolbox import ServerTools
from codeloop.tool.truncate import truncate_output
from codeloop.workspace.workspace import Workspace

_RESERVED_TOOL_NAMES = frozenset(
    (*BUILTIN_TOOLS, *OWN_TOOLS, "batch", "skill", "websearch", "codesearch", "invalid")
)
"""Names that no server's tool gets, so that it can't pass for another tool;
those in permission rules are added.
"""


def make_mcp_table(
    settings: ProjectSettings,
    workspace: Workspace,
    publish_live: Callable[[LiveEvent], None],
    offer_tools: Callable[[ServerTools], None],
) -> McpTable:
    """Make the table of the configured servers; none is started yet.

    `publish_live` informs clients of changes. `offer_tools` is called when servers
    have other tools than before.
    """

    def announce_tools(server: str) -> None:
        publish_live(McpToolsChanged(properties=McpServerName(server=server)))
        if table.has_other_tools:
            offer_tools(make_server_tools(settings, table))

    def warn(message: str) -> None:
        publish_live(ToastShown(properties=Toast(message=message, variant="warning")))

    definitions = parse_definitions(
        settings.config.mcp, _find_scopes(settings), settings.loaded.own_entries
    )
    project = McpProject(
        workspace=workspace,
        paths=settings.paths,
        logs=settings.home / "mcp",
        tell=announce_tools,
        warn=warn,
        is_trusted=settings.trusted,
    )
    table = McpTable(
        definitions, project, _RESERVED_TOOL_NAMES | list_named_permissions(), _make_servers
    )
    return table


def make_server_tools(settings: ProjectSettings, table: McpTable) -> ServerTools:
    """Return the tools of the servers that are known now, without starting a server."""
    return ServerTools(
        make_tools(table), make_fit(table, settings.config.mcp_share), make_find(table)
    )


async def read_attached_resource(
    table: McpTable | None, context: ToolContext, part: FilePartInput
) -> list[PartInput]:
    """Read a mentioned resource: its text, truncated like a tool's output, and its pictures.

    `table`: None if the project has no servers. Raises OperationError when the server or the
    resource does not exist; Denied, Rejected.
    """
    name = part.filename or part.url
    server = part.source.client_name if isinstance(part.source, ResourceSource) else ""
    if table is None or server not in table.definitions:
        available = f" There are: {', '.join(table.definitions)}." if table is not None else ""
        raise OperationError(
            "BadRequest", f"{name} was not attached: there is no MCP server {server!r}.{available}"
        )
    from codeloop.extend.mcp.tools.resources import fetch_resource

    try:
        texts, files = await fetch_resource(table.running.by_name[server], part.url, context)
    except ToolFailure as error:
        raise OperationError("BadRequest", f"{name} was not attached. {error}") from error
    text = truncate_output(
        ToolResult(name, "\n".join(texts) or "(empty)"), context.workspace.scratch
    ).output
    text_part_input = TextPartInput(
        text=f"The user attached the MCP resource {name}:\n{text}", synthetic=True
    )
    return [
        text_part_input,
        *(FilePartInput(mime=each.mime, url=each.url, filename=each.filename) for each in files),
    ]


def _make_servers(table: McpTable) -> RunningServers:
    from codeloop.extend.mcp.mcp_servers import McpServers

    return McpServers(table)


def _find_scopes(settings: ProjectSettings) -> dict[str, str]:
    """Return the project's root for each server that a file of the project defines,
    by the server's name.
    """
    # By the names that the entries have in the end: a file may have them in another place,
    # such as `mcp.servers`.
    loaded, root = settings.loaded, str(settings.project_root.root)
    return {
        name: root
        for name in loaded.config.mcp
        if any(origin.layer.is_project for origin in loaded.list_origins(("mcp", name)))
    }
