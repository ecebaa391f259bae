"""The operations of `experimental`.

Written by scripts/generate_client.py; not to be edited.
"""

from codeloop.client.client import Client
from codeloop.schema.operation import CAPABILITIES, CONSOLE, RESOURCE_LIST, WORKSPACE_LIST, WORKSPACE_STATUS
from codeloop.schema.project import Capabilities, ConsoleState
from codeloop.schema.wire import JSON


async def capabilities_get(client: Client) -> Capabilities:
    """GET /experimental/capabilities."""
    return await client.call(CAPABILITIES)


async def console_get(client: Client) -> ConsoleState:
    """GET /experimental/console."""
    return await client.call(CONSOLE)


async def resource_list(client: Client) -> JSON:
    """GET /experimental/resource."""
    return await client.call(RESOURCE_LIST)


async def workspace_list(client: Client) -> list[JSON]:
    """GET /experimental/workspace."""
    return await client.call(WORKSPACE_LIST)


async def workspace_status(client: Client) -> list[JSON]:
    """GET /experimental/workspace/status."""
    return await client.call(WORKSPACE_STATUS)
