"""The operations of `instance`.

Written by scripts/generate_client.py; not to be edited.
"""

from codeloop.client.client import Client
from codeloop.schema.operation import INSTANCE_DISPOSE


async def dispose(client: Client) -> bool:
    """POST /instance/dispose."""
    return await client.call(INSTANCE_DISPOSE)
