"""Parameters of the search tool and the resource tool,
and texts that they and the servers' tools share.
"""

from typing import Annotated, Any

import msgspec

from codeloop.extend.mcp.cache.table import ServerTool
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.limits import MCP_DESCRIPTION, MCP_SERVER_NAMES


class McpParams(msgspec.Struct, frozen=True):
    """The parameters of the search tool: what to search for, or what to call."""

    query: str | None = None
    server: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None


class ResourceParams(msgspec.Struct, frozen=True):
    """The parameters of the tool that reads resources."""

    server: Annotated[str, msgspec.Meta(description="leave out to list all servers' resources")] = (
        ""
    )
    uri: Annotated[str, msgspec.Meta(description="leave out to list the server's resources")] = ""


def describe_tool(tool: ServerTool) -> str:
    """Return a tool's description for the model: hidden characters shown by name,
    cut at the limit.
    """
    text = escape_controls(tool.listed.description or tool.listed.title or tool.listed.name).strip()
    return text if len(text) <= MCP_DESCRIPTION.value else f"{text[: MCP_DESCRIPTION.value]}…"


def join_names(names: list[str]) -> str:
    """Join names up to a bounded length, with a count of the rest."""
    shown_names: list[str] = []
    chars_left = MCP_SERVER_NAMES.value
    for index, name in enumerate(map(escape_controls, names)):
        chars_left -= len(name) + len(", ")
        if chars_left < 0:
            return f"{', '.join(shown_names)} and {len(names) - index} more"
        shown_names.append(name)
    return ", ".join(shown_names)
