"""The operations of `file`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.files import FileContent, FileNode, FileStatus, OfOnePath
from codeloop.schema.operation import FILE_LIST, FILE_READ, FILE_STATUS


async def list_(client: Client, args: OfOnePath) -> list[FileNode]:
    """GET /file."""
    return await client.call(FILE_LIST, **asdict(args))


async def read(client: Client, args: OfOnePath) -> FileContent:
    """GET /file/content."""
    return await client.call(FILE_READ, **asdict(args))


async def status(client: Client) -> list[FileStatus]:
    """GET /file/status."""
    return await client.call(FILE_STATUS)
