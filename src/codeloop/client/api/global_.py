"""The operations of `global`.

Written by scripts/generate_client.py; not to be edited.
"""

from codeloop.client.client import Client
from codeloop.schema.operation import GLOBAL_DISPOSE, HEALTH
from codeloop.schema.project import Health


async def health(client: Client) -> Health:
    """GET /global/health."""
    return await client.call(HEALTH)


async def dispose(client: Client) -> bool:
    """POST /global/dispose."""
    return await client.call(GLOBAL_DISPOSE)
