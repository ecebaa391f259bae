"""Calls tools of MCP servers: asks for permission, sends the request, and converts the answer."""

import base64
import binascii
import mimetypes
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from codeloop.extend.mcp.cache.table import McpTable, ServerTool
from codeloop.extend.mcp.mcp_server import McpServer, downgrade_protocol
from codeloop.extend.mcp.transport.failures import ServerFailed
from codeloop.kit.text.terminal_text import escape_controls, one_line
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.ids import new_id
from codeloop.schema.part import FilePart
from codeloop.schema.permission import Need, Writes
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolContext, ToolFailure, ToolResult
from codeloop.tool.truncate import truncate_output
from codeloop.workspace.files.image import ImageRefused, fit_image
from codeloop.workspace.files.saved_outputs import save_output, shorten_output

if TYPE_CHECKING:
    from mcp import Client


def convert_result(data: JSON, title: str, metadata: JSON, ctx: ToolContext) -> ToolResult:
    """Return a call's result: texts in order, pictures and sound as attachments, other data as files.

    Raises ToolFailure with the same text, cut as it would be, when the server says that the call failed.
    """
    texts, files = convert_blocks(data.get("content") or [], ctx)
    structured: Any = data.get("structuredContent")
    if structured is not None:
        metadata = {**metadata, "structured": structured}
        if not texts:
            texts = [msgspec.json.format(msgspec.json.encode(structured), indent=2).decode()]
    output = "\n".join(texts) or ("(no text)" if files else "(no output)")
    result = ToolResult(title, output, metadata, tuple(files))
    if data.get("isError"):
        # Results are cut elsewhere, but the text of an exception is not.
        cut = truncate_output(result, ctx.workspace.scratch)
        raise ToolFailure(f"The server says that the call failed: {cut.output}", cut.metadata)
    return result


def convert_blocks(blocks: list[JSON], ctx: ToolContext) -> tuple[list[str], list[FilePart]]:
    """Return the texts and the attachments of content blocks; attached or saved data leaves a line of text."""
    texts: list[str] = []
    files: list[FilePart] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                texts.append(str(block.get("text", "")))
            case "image" | "audio":
                _add_data(str(block.get("data", "")), str(block.get("mimeType", "")), "", ctx, texts, files)
            case "resource":
                add_resource(block.get("resource") or {}, ctx, texts, files)
            case "resource_link":
                about = f": {block['description']}" if block.get("description") else ""
                texts.append(
                    f"[resource {block.get('uri')} ({block.get('name', '')}){about}; read it with mcp_resource]"
                )
            case kind:
                texts.append(f"[{kind} is not known and was left out]")
    return texts, files


def add_resource(resource: JSON, ctx: ToolContext, texts: list[str], files: list[FilePart]) -> None:
    """Add a resource's text or data to `texts` and `files`."""
    if "text" in resource:
        texts.append(str(resource["text"]))
    elif "blob" in resource:
        uri = str(resource.get("uri", ""))
        _add_data(str(resource["blob"]), str(resource.get("mimeType", "")), uri, ctx, texts, files)


def _add_data(data: str, mime: str, uri: str, ctx: ToolContext, texts: list[str], files: list[FilePart]) -> None:
    try:
        # Some servers break base64 into lines, which a strict decoder refuses.
        raw = base64.b64decode("".join(data.split()), validate=True)
    except (ValueError, binascii.Error):
        texts.append(f"[{mime or 'data'} left out: its base64 is broken]")
        return
    name = uri.rpartition("/")[2] or f"{mime.replace('/', '.') or 'data'}"
    if mime.startswith("image/"):
        try:
            picture = fit_image(raw)
        except ImageRefused as error:
            texts.append(f"[{mime} left out: {error}]")
            return
        mime, raw = picture.mime, picture.data
    if mime.startswith(("image/", "audio/")) or mime == "application/pdf":
        url = f"data:{mime};base64,{base64.b64encode(raw).decode()}"
        session, message = ctx.session_id, ctx.message_id
        part = FilePart(id=new_id("prt"), session_id=session, message_id=message, mime=mime, url=url, filename=name)
        files.append(part)
        texts.append(f"[{mime} attached, {len(raw):,} bytes]")
        # Few models hear sound, so it is also saved as a file that a program can work on.
        if not mime.startswith("audio/"):
            return
    try:
        file = save_output(ctx.workspace.scratch, raw)
    except OSError as error:
        texts.append(f"[{mime or 'data'} of {len(raw):,} bytes could not be saved: {error.strerror}]")
        return
    path = file.with_name(f"{file.name}{mimetypes.guess_extension(mime) or '.bin'}")
    file.replace(path)
    texts.append(f"[{mime or 'data'} of {len(raw):,} bytes saved in {shorten_output(path)}]")


# Part of the error of a server that wanted to send a request, which the newest protocol version no longer allows.
_NO_CHANNEL_TEXT = "server-initiated request"
# The note about new tools is one line of the model's context.
_MAX_NAMES_CHARS = 400


async def call_tool(table: McpTable, tool: ServerTool, arguments: JSON, ctx: ToolContext) -> ToolResult:
    """Call a tool. Raises ToolFailure, Denied, Rejected."""
    server: McpServer = table.running.by_name[tool.server]
    metadata: JSON = {"server": tool.server, "tool": tool.listed.name, "input": arguments}
    writes = Writes() if tool.is_local else None
    need = Need(permission=tool.name, patterns=("*",), always=("*",), metadata=metadata, writes=writes)
    await ctx.ask(*await server.find_needs(), need)
    # A call may change the tools of its server, such as one that signs in or opens a project.
    before = _list_names(table, server)
    try:
        answer = await server.request(partial(send_call, tool.listed.name, arguments), ctx)
    except ServerFailed as error:
        raise ToolFailure(str(error)) from error
    await _announce_new_tools(table, server, before, ctx)
    title = escape_controls(tool.listed.title or tool.listed.name)
    about: JSON = {"server": tool.server, "tool": tool.listed.name}
    try:
        return convert_result(answer, f"{tool.server}: {title}", about, ctx)
    except ToolFailure as error:
        if _NO_CHANNEL_TEXT not in str(error) or not await downgrade_protocol(server):
            raise
        again = (
            f"The MCP server {server.name} will be spoken to in an older version of the protocol, in which it can ask."
        )
        raise ToolFailure(f"{error}\n{again}", advice="Call the tool again.") from error


async def _announce_new_tools(table: McpTable, server: McpServer, before: list[str], ctx: ToolContext) -> None:
    """Ask the user to agree to tools added during a call, and tell the model their names."""
    try:
        await server.settle(ctx)
    except (Denied, Rejected):
        line = f"The tools of the MCP server {server.name} have changed, which the user has not agreed to."
        ctx.services.notices.add(ctx.session_id, line)
        return
    new = [name for name in _list_names(table, server) if name not in before]
    if before and new:
        line = f"The MCP server {server.name} has new tools, which can be called now: {', '.join(new)}"
        ctx.services.notices.add(ctx.session_id, one_line(line, _MAX_NAMES_CHARS))


def _list_names(table: McpTable, server: McpServer) -> list[str]:
    return list(table.tools({server.name: server.listing})) if server.listing is not None else []


async def send_call(name: str, arguments: JSON, client: "Client", progress_callback: Any) -> Any:
    """Make a call with the package's client; `progress_callback` is called with its progress."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        progress_callback(progress, total, message)

    return await client.call_tool(name, arguments, progress_callback=report)
