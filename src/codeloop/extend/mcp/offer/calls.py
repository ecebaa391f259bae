"""A call of a server's tool: asked about under its own name, made, and its answer brought into our form."""

from functools import partial
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.known.table import McpTable, ServerTool
from codeloop.extend.mcp.link.failures import ServerFailed
from codeloop.extend.mcp.offer.results import result_of
from codeloop.extend.mcp.server import McpServer
from codeloop.kit.terminal_text import inert
from codeloop.schema.permission import Need, Writes
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult

if TYPE_CHECKING:
    from mcp import Client


async def call_tool(table: McpTable, tool: ServerTool, given: JSON, ctx: ToolContext) -> ToolResult:
    """Call a tool. Raises ToolFailure, Denied, Rejected."""
    server: McpServer = table.running.by_name[tool.server]
    metadata: JSON = {"server": tool.server, "tool": tool.listed.name, "input": given}
    writes = Writes() if tool.is_local else None
    need = Need(permission=tool.name, patterns=("*",), always=("*",), metadata=metadata, writes=writes)
    await ctx.ask(*server.needs(), need)
    try:
        answer = await server.request(partial(made, tool.listed.name, given), ctx)
    except ServerFailed as error:
        raise ToolFailure(str(error)) from error
    title = inert(tool.listed.title or tool.listed.name)
    return result_of(answer, f"{tool.server}: {title}", {"server": tool.server, "tool": tool.listed.name}, ctx)


async def made(name: str, given: JSON, client: "Client", heard: Any) -> Any:
    """Make a call with the package's client; `heard` is told of its progress."""

    async def told(progress: float, total: float | None, message: str | None) -> None:
        heard(progress, total, message)

    return await client.call_tool(name, given, progress_callback=told)
