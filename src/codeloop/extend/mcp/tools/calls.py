"""Calls tools of MCP servers: asks for permission, sends the request,
and says which tools are new after it.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from codeloop.extend.mcp.cache.table import McpTable, ServerTool
from codeloop.extend.mcp.mcp_server import McpServer, downgrade_protocol
from codeloop.extend.mcp.tools.ask_places import ask_for_places
from codeloop.extend.mcp.tools.content_blocks import convert_result
from codeloop.extend.mcp.tools.handed_files import hand_over_files
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.permission import Need, Writes
from codeloop.schema.wire import JSON, replace
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult

if TYPE_CHECKING:
    from mcp import Client

# Part of the error of a server that wanted to send a request,
# which the newest protocol version no longer allows.
_NO_CHANNEL_TEXT = "server-initiated request"
# A longer text of a result is content.
_MAX_ERROR_CHARS = 2_000
# The note about new tools is one line of the model's context.
_MAX_NAMES_CHARS = 400
# So many texts of a call's arguments are looked at for paths.
_MAX_TEXTS = 100


async def call_tool(
    table: McpTable, tool: ServerTool, arguments: JSON, ctx: ToolContext
) -> ToolResult:
    """Call a tool. Raises ToolFailure, Denied, Rejected."""
    server: McpServer = table.running.by_name[tool.server]
    metadata: JSON = {"server": tool.server, "tool": tool.listed.name, "input": arguments}
    writes = Writes() if tool.is_local else None
    need = Need(
        permission=tool.name, patterns=("*",), always=("*",), metadata=metadata, writes=writes
    )
    await ctx.ask(*await server.find_needs(), need)
    await ask_for_places(server, ctx)
    # A call may change the tools of its server, such as one that signs in or opens a project.
    names_before = _list_names(table, server)
    given = tuple(islice(_list_texts(arguments), _MAX_TEXTS))
    try:
        answer = await server.request(partial(send_call, tool.listed.name, arguments), ctx)
    except ServerFailed as error:
        note = await asyncio.to_thread(server.explain, str(error)[:_MAX_ERROR_CHARS], given)
        is_new = note and note not in str(error)
        raise ToolFailure(f"{error}\n{note}" if is_new else str(error)) from error
    await _announce_new_tools(table, server, names_before, ctx)
    title = escape_controls(tool.listed.title or tool.listed.name)
    result_metadata: JSON = {"server": tool.server, "tool": tool.listed.name}
    try:
        result = convert_result(answer, f"{tool.server}: {title}", result_metadata, ctx)
        # What the result names is handed over, or was refused by that name.
        given = tuple(each for each in given if each not in result.output)
        output = await asyncio.to_thread(hand_over_files, server, result.output, ctx)
        result = replace(result, output=output)
        # Many servers tell of a failure in a result that counts as a success.
        said = result.output if len(result.output) < _MAX_ERROR_CHARS else ""
        note = await asyncio.to_thread(server.explain, said, given)
        return replace(result, output=f"{result.output}\n\n{note}") if note else result
    except ToolFailure as error:
        if note := await asyncio.to_thread(server.explain, str(error)[:_MAX_ERROR_CHARS], given):
            raise ToolFailure(f"{error}\n{note}") from error
        if _NO_CHANNEL_TEXT not in str(error) or not await downgrade_protocol(server):
            raise
        note = (
            f"The MCP server {server.name} will be spoken to in an older version of the "
            f"protocol, in which it can ask."
        )
        raise ToolFailure(f"{error}\n{note}", advice="Call the tool again.") from error


def _list_texts(value: Any) -> Iterator[str]:
    """Yield the short texts of a call's arguments, which may be paths."""
    if isinstance(value, str):
        if len(value) < _MAX_NAMES_CHARS:
            yield value
    elif isinstance(value, dict):
        for each in cast("JSON", value).values():
            yield from _list_texts(each)
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _list_texts(each)


async def _announce_new_tools(
    table: McpTable, server: McpServer, names_before: list[str], ctx: ToolContext
) -> None:
    """Ask the user to agree to tools added during a call, and tell the model their names."""
    try:
        await server.settle(ctx)
    except (Denied, Rejected):
        line = f"The tools of the MCP server {server.name} have changed, which the user has not agreed to."
        ctx.services.notices.add(ctx.session_id, line)
        return
    new_names = [name for name in _list_names(table, server) if name not in names_before]
    if names_before and new_names:
        line = f"The MCP server {server.name} has new tools, which can be called now: {', '.join(new_names)}"
        ctx.services.notices.add(ctx.session_id, one_line(line, _MAX_NAMES_CHARS))


def _list_names(table: McpTable, server: McpServer) -> list[str]:
    """Return the names that models call a server's tools by."""
    return (
        list(table.name_tools({server.name: server.listing})) if server.listing is not None else []
    )


async def send_call(name: str, arguments: JSON, client: "Client", progress_callback: Any) -> Any:
    """Make a call with the package's client; `progress_callback` is called with its progress."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        progress_callback(progress, total, message)

    return await client.call_tool(name, arguments, progress_callback=report)
