"""Servers' resources: listed and read by the model, and mentioned in prompts as `@server:uri`."""

from functools import partial
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.cache.table import McpTable
from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.mcp_servers import McpServers
from codeloop.extend.mcp.tools.content_blocks import add_resource
from codeloop.extend.mcp.tools.parameters import ResourceParams
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.schema.part import FilePart
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult

if TYPE_CHECKING:
    from mcp import Client

RESOURCE_PERMISSION = "mcp_resource"
_MAX_DESCRIPTION_CHARS = 120


async def read_resource(table: McpTable, params: ResourceParams, ctx: ToolContext) -> ToolResult:
    """Read a resource, or list them. Raises ToolFailure, Denied, Rejected."""
    servers: McpServers = table.running
    if params.server and params.server not in servers.by_name:
        raise ToolFailure(
            f"There is no MCP server {params.server!r}. There are: {', '.join(servers.by_name)}."
        )
    if not params.server or not params.uri:
        return _list_resources(servers, params.server)
    texts, files = await fetch_resource(servers.by_name[params.server], params.uri, ctx)
    title = f"{params.server}: {escape_controls(params.uri)}"
    return ToolResult(title, "\n".join(texts) or "(empty)", {"server": params.server}, tuple(files))


async def fetch_resource(
    server: McpServer, uri: str, ctx: ToolContext
) -> tuple[list[str], list[FilePart]]:
    """Return the texts and files of a resource. Raises ToolFailure, Denied, Rejected."""
    pattern = f"{server.name}:{uri}"
    need = Need(
        permission=RESOURCE_PERMISSION,
        patterns=(pattern,),
        always=(f"{server.name}:*",),
        metadata={"uri": uri},
    )
    await ctx.ask(*await server.find_needs(), need)
    try:
        answer = await server.request(partial(_request_resource, uri), ctx)
        await server.watch(uri, ctx)
    except ServerFailed as error:
        raise ToolFailure(str(error)) from error
    texts: list[str] = []
    files: list[FilePart] = []
    contents: list[JSON] = answer.get("contents") or []
    for each in contents:
        add_resource(each, ctx, texts, files)
    return texts, files


async def _request_resource(uri: str, client: "Client", _report_progress: Any) -> Any:
    return await client.read_resource(uri)


def _list_resources(servers: McpServers, server: str) -> ToolResult:
    """Return the list of a server's resources; "": of all servers'."""
    lines = [
        f"- {name} {escape_controls(each.uri)} ({escape_controls(each.name)}) "
        f"{one_line(each.description, _MAX_DESCRIPTION_CHARS)}".rstrip()
        for name, listing in servers.listings.items()
        if server in {"", name}
        for each in listing.resources
    ]
    return ToolResult("MCP resources", "\n".join(lines) or "There are no resources.")
