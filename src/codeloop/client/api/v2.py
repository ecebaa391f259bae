"""The operations of `v2`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.files import FindFiles, FoundFiles
from codeloop.schema.operation import FS_FIND, LOCATION_GET
from codeloop.schema.project import LocationInfo


async def location_get(client: Client) -> LocationInfo:
    """GET /api/location."""
    return await client.call(LOCATION_GET)


async def fs_find(client: Client, args: FindFiles) -> FoundFiles:
    """GET /api/fs/find."""
    return await client.call(FS_FIND, **asdict(args))
