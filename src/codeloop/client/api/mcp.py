"""The operations of `mcp`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import MCP_ADD, MCP_CONNECT, MCP_DISCONNECT, MCP_STATUS
from codeloop.schema.project import AddMcp, McpStatus, OfOneMcp


async def status(client: Client) -> dict[str, McpStatus]:
    """GET /mcp."""
    return await client.call(MCP_STATUS)


async def add(client: Client, args: AddMcp) -> dict[str, McpStatus]:
    """POST /mcp.

    Names an MCP server and how it is started or reached.
    """
    return await client.call(MCP_ADD, **asdict(args))


async def connect(client: Client, args: OfOneMcp) -> bool:
    """POST /mcp/{name}/connect."""
    return await client.call(MCP_CONNECT, **asdict(args))


async def disconnect(client: Client, args: OfOneMcp) -> bool:
    """POST /mcp/{name}/disconnect."""
    return await client.call(MCP_DISCONNECT, **asdict(args))
