"""Makes our tools of servers' tools. They are offered directly while they are few,
or else through a search tool.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from codeloop.extend.mcp.cache.table import McpTable, ServerTool
from codeloop.extend.mcp.tools.parameters import (
    McpParams,
    ResourceParams,
    describe_tool,
    join_names,
)
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.model.chat import ToolSpec
from codeloop.schema.installation import check_package_file
from codeloop.schema.limits import MCP_DIRECT, MCP_SEARCH_SUMMARY, MCP_SHARE
from codeloop.schema.wire import JSON, replace
from codeloop.tool.json_schema import clean_schema
from codeloop.tool.tool import (
    CONCURRENT_TRAITS,
    ExternalParameters,
    Tool,
    ToolContext,
    ToolResult,
    Traits,
)
from codeloop.tool.toolbox import FindTool, FitTools

SEARCH_TOOL = "mcp"
RESOURCE_TOOL = "mcp_resource"
OWN_TOOLS = frozenset((SEARCH_TOOL, RESOURCE_TOOL))
_FOLDER = Path(__file__).parent
# Roughly, for JSON; a tokenizer would be slower, and differs from model to model.
_BYTES_PER_TOKEN = 4
# The window of a model whose own is unknown.
_ASSUMED_WINDOW_TOKENS = 100_000


def make_tools(table: McpTable) -> tuple[Tool, ...]:
    """Return the tools of every known server, the search tool,
    and the tool that reads resources if there are any.
    """
    if not any(each.is_enabled for each in table.definitions.values()):
        return ()
    tools = [_make_server_tool(table, tool) for tool in table.offer().values()]
    tools.append(_make_search_tool(table))
    if any(listing.resources for listing in table.listings.values()):
        tools.append(_make_resource_tool(table))
    return tuple(tools)


def make_fit(table: McpTable, share: int | None) -> FitTools:
    """Return a function that drops the servers' tools where they would fill too much of a window,
    else the search tool.

    The search tool stays while a server's tools are unknown. `share`: percent of the window; None:
    what costs less over a session.
    """
    servers = {name: tool.server for name, tool in table.name_tools(table.listings).items()}
    is_all_known = not table.unknown

    def fit(specs: tuple[ToolSpec, ...], window: int) -> tuple[ToolSpec, ...]:
        server_specs = [spec for spec in specs if spec.name in servers]
        max_tokens = (
            (window or _ASSUMED_WINDOW_TOKENS) * (MCP_SHARE.value if share is None else share) / 100
        )
        if share is None:
            max_tokens = min(max_tokens, MCP_DIRECT.value)
        if _estimate_tokens(server_specs) > max_tokens:
            return tuple(spec for spec in specs if spec.name not in servers)
        # Reversed, so that the first tool of each server is the one that stays in the dictionary.
        first_tools = {servers[spec.name]: spec.name for spec in reversed(server_specs)}
        fitted: list[ToolSpec] = []
        for spec in specs:
            server = servers.get(spec.name, "")
            if spec.name == SEARCH_TOOL and is_all_known:
                continue
            # The first tool of each server carries the server's instructions.
            is_first = first_tools.get(server) == spec.name
            fitted.append(_add_instructions(table, server, spec) if is_first else spec)
        return tuple(fitted)

    return fit


def _add_instructions(table: McpTable, server: str, spec: ToolSpec) -> ToolSpec:
    """Return a tool of a server with the server's instructions, if it has any."""
    instructions = table.listings[server].instructions_line
    if not instructions:
        return spec
    note = f"About the tools of {escape_controls(server)}: {instructions}"
    return replace(spec, description=f"{spec.description}\n\n{note}")


def make_find(table: McpTable) -> FindTool:
    """Return a function that finds a tool by a name with a server's prefix.
    Its call asks the server for the tool.
    """

    def find(name: str) -> Tool | None:
        if not table.match_servers(name):
            return None

        async def run(params: JSON, ctx: ToolContext) -> ToolResult:
            # Imported late: these modules load the running servers, which most sessions never need.
            from codeloop.extend.mcp.tools.search import call_unlisted_tool

            return await call_unlisted_tool(table, name, params, ctx)

        return Tool(name, "", ExternalParameters, run, schema={"type": "object", "properties": {}})

    return find


def _estimate_tokens(specs: Iterable[ToolSpec]) -> float:
    return (
        sum(len(spec.description) + len(msgspec.json.encode(spec.parameters)) for spec in specs)
        / _BYTES_PER_TOKEN
    )


def _make_server_tool(table: McpTable, tool: ServerTool) -> Tool:
    async def run(params: JSON, ctx: ToolContext) -> ToolResult:
        from codeloop.extend.mcp.tools.calls import call_tool

        return await call_tool(table, tool, params, ctx)

    schema: JSON = {"type": "object", "properties": {}, **clean_schema(tool.listed.schema)}
    traits = Traits(concurrent=tool.listed.read_only)
    return Tool(
        tool.name,
        describe_tool(tool),
        ExternalParameters,
        run,
        traits,
        schema=schema,
        origin=f"the MCP server {escape_controls(tool.server)}",
    )


def _make_search_tool(table: McpTable) -> Tool:
    text = check_package_file(_FOLDER / "mcp.md").read_text(encoding="utf-8").strip()
    names = join_names([name for name, each in table.definitions.items() if each.is_enabled])

    async def run(params: McpParams, ctx: ToolContext) -> ToolResult:
        from codeloop.extend.mcp.tools.search import search_or_call

        return await search_or_call(table, params, ctx)

    return Tool(
        SEARCH_TOOL,
        "\n".join([text, f"Servers: {names}", *_describe_servers(table)]),
        McpParams,
        run,
    )


def _describe_servers(table: McpTable) -> list[str]:
    """Return a line for each server with instructions, bounded in total."""
    lines: list[str] = []
    chars_left = MCP_SEARCH_SUMMARY.value
    for name, listing in table.listings.items():
        if not listing.instructions_line:
            continue
        line = f"- {escape_controls(name)}: {listing.instructions_line}"
        chars_left -= len(line)
        if chars_left >= 0:
            lines.append(line)
    return lines


def _make_resource_tool(table: McpTable) -> Tool:
    text = check_package_file(_FOLDER / "mcp_resource.md").read_text(encoding="utf-8").strip()

    async def run(params: ResourceParams, ctx: ToolContext) -> ToolResult:
        from codeloop.extend.mcp.tools.resources import read_resource

        return await read_resource(table, params, ctx)

    return Tool(RESOURCE_TOOL, text, ResourceParams, run, CONCURRENT_TRAITS)
