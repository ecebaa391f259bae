"""Tools of servers as tools of ours: offered directly while they are few, else found and called through one tool."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from codeloop.extend.mcp.known.table import McpTable, ServerTool
from codeloop.extend.mcp.offer.parameters import McpParams, ResourceParams, described
from codeloop.kit.lazy import load
from codeloop.kit.terminal_text import inert
from codeloop.model.chat import ToolSpec
from codeloop.schema.limits import MCP_NAMED, MCP_SHARE
from codeloop.schema.wire import JSON
from codeloop.tool.json_schema import OwnParameters, shown_schema
from codeloop.tool.tool import READ_ONLY, Tool, ToolContext, ToolResult, Traits
from codeloop.tool.toolbox import Fit

SEARCH = "mcp"
RESOURCE = "mcp_resource"
OWN = frozenset((SEARCH, RESOURCE))
_FOLDER = Path(__file__).parent
_TOKEN = 4
"""Bytes of JSON that count as one token."""
_WINDOW = 100_000
"""The window of a model of which none is known."""


def tools_of(table: McpTable) -> tuple[Tool, ...]:
    """Return the tools of every server that is known, and those that find, call and read."""
    if not any(each.is_enabled for each in table.definitions.values()):
        return ()
    found = [_tool(table, tool) for tool in table.tools(table.listings).values()]
    resources = any(listing.resources for listing in table.listings.values())
    return (*found, _search(table), *([_resource(table)] if resources else []))


def fit_of(table: McpTable, share: int | None) -> Fit:
    """Return what leaves out the servers' tools where they would take too much of a window, else what finds them.

    `share`: percent of the window.
    """
    names = frozenset(table.tools(table.listings))
    is_all_known = not table.unknown

    def fit(specs: tuple[ToolSpec, ...], window: int) -> tuple[ToolSpec, ...]:
        own = [spec for spec in specs if spec.name in names]
        most = (window or _WINDOW) * (MCP_SHARE.value if share is None else share) / 100
        if _tokens(own) > most:
            return tuple(spec for spec in specs if spec.name not in names)
        return tuple(spec for spec in specs if spec.name != SEARCH) if is_all_known else specs

    return fit


def _tokens(specs: Iterable[ToolSpec]) -> float:
    return sum(len(spec.description) + len(msgspec.json.encode(spec.parameters)) for spec in specs) / _TOKEN


def _tool(table: McpTable, tool: ServerTool) -> Tool:
    async def run(params: JSON, ctx: ToolContext) -> ToolResult:
        call: Callable[..., Any] = load("extend.mcp.offer.calls:call_tool")
        return await call(table, tool, params, ctx)

    schema: JSON = {"type": "object", "properties": {}, **shown_schema(tool.listed.schema)}
    traits = Traits(concurrent=tool.listed.read_only)
    return Tool(tool.name, described(tool), OwnParameters, run, traits, schema=schema)


def _search(table: McpTable) -> Tool:
    text = (_FOLDER / "mcp.md").read_text(encoding="utf-8").strip()
    names = named([name for name, each in table.definitions.items() if each.is_enabled])
    run = partial(_load_and_run, table, "extend.mcp.offer.search:search")
    return Tool(SEARCH, f"{text}\nServers: {names}", McpParams, run)


def _resource(table: McpTable) -> Tool:
    text = (_FOLDER / "mcp_resource.md").read_text(encoding="utf-8").strip()
    run = partial(_load_and_run, table, "extend.mcp.offer.resources:read_resource")
    return Tool(RESOURCE, text, ResourceParams, run, READ_ONLY)


async def _load_and_run(table: McpTable, target: str, params: Any, ctx: ToolContext) -> ToolResult:
    run: Callable[..., Any] = load(target)
    return await run(table, params, ctx)


def named(names: list[str]) -> str:
    """Return names as a list of bounded length; those that are left out are counted."""
    shown: list[str] = []
    left = MCP_NAMED.value
    for place, name in enumerate(map(inert, names)):
        left -= len(name) + 2
        if left < 0:
            return f"{', '.join(shown)} and {len(names) - place} more"
        shown.append(name)
    return ", ".join(shown)
