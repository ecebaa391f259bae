"""The operations of `command`.

Written by scripts/generate_client.py; not to be edited.
"""

from codeloop.client.client import Client
from codeloop.schema.command import Command
from codeloop.schema.operation import COMMAND_LIST


async def list_(client: Client) -> list[Command]:
    """GET /command."""
    return await client.call(COMMAND_LIST)
