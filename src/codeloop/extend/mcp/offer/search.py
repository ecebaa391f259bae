"""The one tool that finds and calls the tools of servers which are too many to be named in every request."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from codeloop.extend.mcp.known.table import McpTable, ServerTool
from codeloop.extend.mcp.link.failures import ServerFailed
from codeloop.extend.mcp.offer.calls import call_tool
from codeloop.extend.mcp.offer.parameters import McpParams, described
from codeloop.extend.mcp.server import McpServer
from codeloop.extend.mcp.servers import McpServers
from codeloop.kit.lazy import load
from codeloop.kit.suggest import near
from codeloop.kit.terminal_text import one_line
from codeloop.schema.limits import MCP_FOUND
from codeloop.schema.wire import JSON
from codeloop.tool.json_schema import OwnParameters, shown_schema
from codeloop.tool.tool import Tool, ToolContext, ToolFailure, ToolResult
from codeloop.tool.toolbox import Prepared

_LINE = 120


async def search(table: McpTable, params: McpParams, ctx: ToolContext) -> ToolResult:
    """Find tools, or call one. A server that nobody has looked at yet is started for it."""
    servers: McpServers = table.running
    if params.tool:
        return await _call(table, servers, params.tool, params, ctx)
    problems = await _look(servers, params.query or "", ctx)
    tools = list(table.tools(servers.listings).values())
    found = _ranked(tools, params.query or "")
    if not found:
        text = f"No tool of an MCP server matches. There are {len(tools)}; an empty query lists them."
    elif (params.query or "").strip():
        shown = found[: MCP_FOUND.value]
        more = [f"- {tool.name}" for tool in found[len(shown) :]]
        text = "\n\n".join([*map(_whole, shown), *(["Also:\n" + "\n".join(more)] if more else [])])
    else:
        text = "\n".join(f"- {tool.name}: {one_line(described(tool), _LINE)}" for tool in found)
    return ToolResult("MCP tools", "\n".join([text, *problems]), {"found": [tool.name for tool in found]})


async def _call(table: McpTable, servers: McpServers, name: str, params: McpParams, ctx: ToolContext) -> ToolResult:
    tools = table.tools(servers.listings)
    if name not in tools:
        await _look(servers, name, ctx)
        tools = table.tools(servers.listings)
    found = tools.get(name)
    if found is None:
        close = near(name, list(tools))
        meant = f" Did you mean {', '.join(close)}?" if close else " Look for it with `query`."
        raise ToolFailure(f"There is no tool {name!r} of an MCP server.{meant}")
    return await _made(table, found, params.arguments or {}, ctx)


async def _made(table: McpTable, found: ServerTool, given: JSON, ctx: ToolContext) -> ToolResult:
    """Call a tool, which extensions see as any other call."""

    async def run(arguments: JSON, context: ToolContext) -> ToolResult:
        return await call_tool(table, found, arguments, context)

    if ctx.session.hooks is None:
        return await run(given, ctx)
    schema: JSON = {"type": "object", "properties": {}, **shown_schema(found.listed.schema)}
    prepared = Prepared(Tool(found.name, "", OwnParameters, run, schema=schema), given, given)
    hooked: Callable[..., Awaitable[ToolResult]] = load("tool.hooked:run_hooked")
    return await hooked(prepared, ctx)


async def _look(servers: McpServers, query: str, ctx: ToolContext) -> list[str]:
    """Start the servers that nobody has looked at: those that are named, else all. Returns what went wrong."""
    unknown = [server for server in servers.by_name.values() if server.status.state == "configured"]
    named = [server for server in unknown if server.name.casefold() in query.casefold()]
    wanted = named or unknown
    needs = [need for server in wanted for need in server.needs()]
    if needs:
        await ctx.ask(*needs)
    return [line for line in await asyncio.gather(*map(_connected, wanted)) if line]


async def _connected(server: McpServer) -> str:
    try:
        await server.connect()
    except ServerFailed as error:
        return str(error)
    return ""


def _ranked(tools: Iterable[ServerTool], query: str) -> list[ServerTool]:
    """Return the tools that have a word of the query, those with most of them first."""
    words = re.findall(r"[^\W_]+", query.casefold())
    if not words:
        return list(tools)
    scored = [(_score(tool, words), place, tool) for place, tool in enumerate(tools)]
    return [tool for score, _, tool in sorted(scored, key=lambda row: (-row[0], row[1])) if score]


def _score(tool: ServerTool, words: list[str]) -> int:
    name, about = tool.name.casefold(), tool.listed.description.casefold()
    return sum(4 * (word in name) + (word in about) for word in words)


def _whole(tool: ServerTool) -> str:
    schema = msgspec.json.encode(shown_schema(tool.listed.schema)).decode()
    return f"{tool.name}\n{described(tool)}\nparameters: {schema}"
