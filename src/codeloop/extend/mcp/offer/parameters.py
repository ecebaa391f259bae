"""What the tools of servers, and those that find and read, take and are described by."""

from typing import Annotated, Any

import msgspec

from codeloop.extend.mcp.known.table import ServerTool
from codeloop.kit.terminal_text import inert
from codeloop.schema.limits import MCP_DESCRIPTION


class McpParams(msgspec.Struct, frozen=True):
    """What to look for, or what to call."""

    query: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None


class ResourceParams(msgspec.Struct, frozen=True):
    """What to read."""

    server: Annotated[str, msgspec.Meta(description="leave out to list all servers' resources")] = ""
    uri: Annotated[str, msgspec.Meta(description="leave out to list the server's resources")] = ""


def described(tool: ServerTool) -> str:
    """Return what a model reads of a tool: its description with hidden characters shown by name, cut at the limit."""
    text = inert(tool.listed.description or tool.listed.title or tool.listed.name).strip()
    return text if len(text) <= MCP_DESCRIPTION.value else f"{text[: MCP_DESCRIPTION.value]}…"
