"""A call of a server's tool: asked about under its own name, made, and its answer brought into our form."""

from functools import partial
from typing import TYPE_CHECKING, Any

from codeloop.extend.mcp.known.table import McpTable, ServerTool
from codeloop.extend.mcp.link.failures import ServerFailed
from codeloop.extend.mcp.offer.results import result_of
from codeloop.extend.mcp.server import McpServer, greet_as_older
from codeloop.kit.terminal_text import inert, one_line
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.permission import Need, Writes
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult
from codeloop.tool.toolbox import Notices

if TYPE_CHECKING:
    from mcp import Client

_NO_CHANNEL = "server-initiated request"
"""In what servers say that can't ask in the version of the protocol that is spoken: such requests are gone from it."""
_NAMES = 400  # characters of the names of new tools


async def call_tool(table: McpTable, tool: ServerTool, given: JSON, ctx: ToolContext) -> ToolResult:
    """Call a tool. Raises ToolFailure, Denied, Rejected."""
    server: McpServer = table.running.by_name[tool.server]
    metadata: JSON = {"server": tool.server, "tool": tool.listed.name, "input": given}
    writes = Writes() if tool.is_local else None
    need = Need(permission=tool.name, patterns=("*",), always=("*",), metadata=metadata, writes=writes)
    await ctx.ask(*await server.needs(), need)
    before = _names(table, server)
    try:
        answer = await server.request(partial(made, tool.listed.name, given), ctx)
    except ServerFailed as error:
        raise ToolFailure(str(error)) from error
    await _tell_of_new_tools(table, server, before, ctx)
    title = inert(tool.listed.title or tool.listed.name)
    about: JSON = {"server": tool.server, "tool": tool.listed.name}
    try:
        return result_of(answer, f"{tool.server}: {title}", about, ctx)
    except ToolFailure as error:
        if _NO_CHANNEL not in str(error) or not await greet_as_older(server):
            raise
        again = (
            f"The MCP server {server.name} will be spoken to in an older version of the protocol, in which it can ask."
        )
        raise ToolFailure(f"{error}\n{again}", advice="Call the tool again.") from error


async def _tell_of_new_tools(table: McpTable, server: McpServer, before: list[str], ctx: ToolContext) -> None:
    """Have the user agree to tools that came with a call, and tell the model their names."""
    try:
        await server.settle(ctx)
    except (Denied, Rejected):
        line = f"The tools of the MCP server {server.name} have changed, which the user has not agreed to."
        ctx.workspace.shared(Notices).add(ctx.session_id, line)
        return
    new = [name for name in _names(table, server) if name not in before]
    if before and new:
        line = f"The MCP server {server.name} has new tools, which can be called now: {', '.join(new)}"
        ctx.workspace.shared(Notices).add(ctx.session_id, one_line(line, _NAMES))


def _names(table: McpTable, server: McpServer) -> list[str]:
    return list(table.tools({server.name: server.listing})) if server.listing is not None else []


async def made(name: str, given: JSON, client: "Client", heard: Any) -> Any:
    """Make a call with the package's client; `heard` is told of its progress."""

    async def told(progress: float, total: float | None, message: str | None) -> None:
        heard(progress, total, message)

    return await client.call_tool(name, given, progress_callback=told)
