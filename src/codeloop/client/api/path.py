"""The operations of `path`.

Written by scripts/generate_client.py; not to be edited.
"""

from codeloop.client.client import Client
from codeloop.schema.operation import PATH_GET
from codeloop.schema.project import PathInfo


async def get(client: Client) -> PathInfo:
    """GET /path."""
    return await client.call(PATH_GET)
