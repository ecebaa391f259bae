"""What the search tool does, which finds and calls servers' tools;
`server_tools.py` makes that tool.

It is for tools that are too many to be named in every request.
"""

import asyncio
import re
from typing import NamedTuple

import msgspec

from codeloop.extend.mcp.cache.table import McpTable, ServerTool
from codeloop.extend.mcp.mcp_server import McpServer
from codeloop.extend.mcp.mcp_servers import McpServers
from codeloop.extend.mcp.tools.calls import call_tool
from codeloop.extend.mcp.tools.parameters import McpParams, describe_tool, join_names
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.kit.text.suggest import find_similar
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.limits import MCP_SEARCH_LINES, MCP_SEARCH_TOOLS
from codeloop.schema.wire import JSON
from codeloop.tool.call_hooks import run_call
from codeloop.tool.json_schema import clean_schema
from codeloop.tool.tool import ExternalParameters, Tool, ToolContext, ToolFailure, ToolResult
from codeloop.tool.toolbox import PreparedCall

_MAX_LINE_CHARS = 120
# Models ask in sentences; these words of a query say nothing about a tool.
_STOP_WORDS = frozenset(
    (
        "a",
        "an",
        "all",
        "and",
        "by",
        "for",
        "from",
        "in",
        "it",
        "of",
        "on",
        "or",
        "the",
        "to",
        "tool",
        "tools",
        "with",
    )
)
# Splits `readFile`, `read_file` and `HTTPServer2` into words.
_WORD = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_a-zA-Z]+"
# Shorter words are compared as they are: too many words begin with the same three letters.
_MIN_STEM_CHARS = 4


async def search_or_call(table: McpTable, params: McpParams, ctx: ToolContext) -> ToolResult:
    """Call the tool `params.tool`, or else search for tools.
    The search starts servers without a listing.
    """
    servers: McpServers = table.running
    if params.tool:
        server_tool = await _find_tool(table, params.tool, ctx, params.server or "")
        return await _run_call(table, server_tool, params.arguments or {}, ctx)
    if params.server and params.server not in servers.by_name:
        raise ToolFailure(
            f"There is no MCP server {params.server!r}. There are: {join_names(list(servers.by_name))}."
        )
    query = params.query or ""
    problems = await _connect_unknown(servers, params.server or query, ctx)
    all_tools = table.name_tools(servers.listings).values()
    tools = [tool for tool in all_tools if params.server in {None, "", tool.server}]
    found = _rank_tools(tools, query)
    if not found:
        text = (
            f"No tool of an MCP server matches. There are {len(tools)}; an empty query lists them."
        )
    else:
        # An empty query wants the list; parameters of arbitrary tools would only cost tokens.
        full_count = MCP_SEARCH_TOOLS.value if _split_words(query) else 0
        blocks = [_format_in_full(tool) for tool in found[:full_count]]
        if rest := found[full_count:]:
            blocks.append(_format_tool_list(rest, follows_others=bool(blocks)))
        text = "\n\n".join(blocks)
    return ToolResult(
        "MCP tools", "\n".join([text, *problems]), {"found": [tool.name for tool in found]}
    )


def _format_tool_list(tools: list[ServerTool], *, follows_others: bool) -> str:
    """Return a list of tools, a line each without their parameters.
    `follows_others`: it comes after tools in full.
    """
    lines = [
        f"- {tool.name}: {one_line(describe_tool(tool), _MAX_LINE_CHARS)}"
        for tool in tools[: MCP_SEARCH_LINES.value]
    ]
    if omitted := len(tools) - len(lines):
        lines.append(f"and {omitted} more: give `server`, or other words as `query`.")
    return "\n".join(["Also, without their parameters:", *lines] if follows_others else lines)


async def call_unlisted_tool(
    table: McpTable, name: str, arguments: JSON, ctx: ToolContext
) -> ToolResult:
    """Call a tool that was unknown when the request was made.
    Raises ToolFailure, Denied, Rejected.
    """
    return await call_tool(table, await _find_tool(table, name, ctx), arguments, ctx)


async def _find_tool(
    table: McpTable, name: str, ctx: ToolContext, server_name: str = ""
) -> ServerTool:
    """Return a tool by its name; if unknown, the servers with its prefix are asked first.

    `server_name`: with it, the name may be the one that this server itself has for the tool.
    """
    servers: McpServers = table.running
    tools = table.name_tools(servers.listings)
    problems: list[str] = []
    possible_names = [name]
    if name not in tools:
        possible_names += [
            each.name
            for each in tools.values()
            if server_name == each.server and name == each.listed.name
        ]
    if not any(each in tools for each in possible_names):
        names_by_server = table.match_servers(name)
        possible_names += names_by_server.values()
        if names_by_server:
            problems = await _connect_servers(
                [servers.by_name[server] for server in names_by_server], ctx
            )
        else:
            problems = await _connect_unknown(servers, name, ctx)
        for server in names_by_server:
            # A server that has just started may have more tools than the user has agreed to.
            await servers.by_name[server].settle(ctx)
        tools = table.name_tools(servers.listings)
    server_tool = next((tools[each] for each in possible_names if each in tools), None)
    if server_tool is not None:
        return server_tool
    if problems:
        raise ToolFailure("\n".join(problems))
    similar_names = find_similar(name, list(tools))
    suggestion = f" Did you mean {', '.join(similar_names)}?" if similar_names else ""
    advice = "" if similar_names else "Look for it with the tool `mcp`."
    raise ToolFailure(f"There is no tool {name!r} of an MCP server.{suggestion}", advice=advice)


async def _run_call(
    table: McpTable, server_tool: ServerTool, arguments: JSON, ctx: ToolContext
) -> ToolResult:
    """Call a tool, with extensions' hooks."""

    async def run(arguments: JSON, context: ToolContext) -> ToolResult:
        return await call_tool(table, server_tool, arguments, context)

    # The tool runs inside the call of another one, so its own hooks have to be called here.
    schema: JSON = {"type": "object", "properties": {}, **clean_schema(server_tool.listed.schema)}
    prepared_call = PreparedCall(
        Tool(server_tool.name, "", ExternalParameters, run, schema=schema), arguments, arguments
    )
    return await run_call(ctx.session.hooks.runner, prepared_call, ctx)


async def _connect_unknown(servers: McpServers, query: str, ctx: ToolContext) -> list[str]:
    """Start the servers without a listing: those that the query names, else all.
    Returns the errors.
    """
    unknown = [
        each
        for each in servers.by_name.values()
        if each.listing is None and each.status.state != "disabled"
    ]
    named = [server for server in unknown if server.name.casefold() in query.casefold()]
    return await _connect_servers(named or unknown, ctx)


async def _connect_servers(mcp_servers: list[McpServer], ctx: ToolContext) -> list[str]:
    """Start servers concurrently; a recently failed one is only reported. Returns the errors."""
    needs = [need for server in mcp_servers for need in await server.find_needs()]
    if needs:
        await ctx.ask(*needs)
    return [line for line in await asyncio.gather(*map(_try_connect, mcp_servers)) if line]


async def _try_connect(server: McpServer) -> str:
    """Connect a server; return why it can't be, or ""."""
    try:
        await server.connect(is_patient=True)
    except ServerFailed as error:
        return str(error)
    return ""


def _rank_tools(tools: list[ServerTool], query: str) -> list[ServerTool]:
    """Return the tools that have a word of the query, those with most of its words first;
    all for no words.
    """
    exact = [tool for tool in tools if query.strip() in {tool.name, tool.listed.name}]
    words = _split_words(query)
    if exact or not words:
        return exact or tools
    scored = [(_score_tool(tool, words), tool) for tool in tools]
    # The sort is stable: tools with equal scores keep their order.
    scored.sort(key=lambda pair: pair[0], reverse=True)
    return [tool for score, tool in scored if score.matched_words]


def _split_words(text: str) -> list[str]:
    return [
        word for each in re.findall(_WORD, text) if (word := each.casefold()) not in _STOP_WORDS
    ]


class _Score(NamedTuple):
    """How many words of a query a tool matches, and a weight that prefers matches in its name."""

    matched_words: int
    weight: int


def _score_tool(tool: ServerTool, words: list[str]) -> _Score:
    properties: JSON = tool.listed.schema.get("properties") or {}
    name_words = _split_words(f"{tool.server} {tool.listed.name} {tool.listed.title}")
    other_words = _split_words(f"{tool.listed.description} {' '.join(properties)}")
    in_name = [any(_have_same_stem(word, each) for each in name_words) for word in words]
    in_other_text = [any(_have_same_stem(word, each) for each in other_words) for word in words]
    # A word in a tool's name says more about it than one in its description.
    return _Score(
        matched_words=sum(map(max, in_name, in_other_text)),
        weight=4 * sum(in_name) + sum(in_other_text),
    )


def _have_same_stem(word: str, other: str) -> bool:
    """Return whether two words are forms of one: `file` and `files`, `create` and `creating`."""
    if word == other:
        return True
    short, long = sorted((word, other), key=len)
    if len(short) < _MIN_STEM_CHARS:
        return False
    # The last letter may differ: `create` is compared as `creat`.
    return long.startswith(short) or (len(short) > _MIN_STEM_CHARS and long.startswith(short[:-1]))


def _format_in_full(tool: ServerTool) -> str:
    schema = msgspec.json.encode(clean_schema(tool.listed.schema)).decode()
    return f"{tool.name}\n{describe_tool(tool)}\nparameters: {schema}"
