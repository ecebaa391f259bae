"""The operations of `project`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import PROJECT_CURRENT, PROJECT_DIRECTORIES, PROJECT_LIST
from codeloop.schema.project import OfOneProject, ProjectDirectory, ProjectInfo


async def list_(client: Client) -> list[ProjectInfo]:
    """GET /project."""
    return await client.call(PROJECT_LIST)


async def current(client: Client) -> ProjectInfo:
    """GET /project/current."""
    return await client.call(PROJECT_CURRENT)


async def directories(client: Client, args: OfOneProject) -> list[ProjectDirectory]:
    """GET /project/{projectID}/directories.

    Names a project.
    """
    return await client.call(PROJECT_DIRECTORIES, **asdict(args))
