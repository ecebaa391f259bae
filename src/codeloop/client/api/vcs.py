"""The operations of `vcs`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.files import AskDiff, VcsFileDiff, VcsFileStatus, VcsInfo
from codeloop.schema.operation import VCS_DIFF, VCS_GET, VCS_STATUS


async def get(client: Client) -> VcsInfo:
    """GET /vcs."""
    return await client.call(VCS_GET)


async def status(client: Client) -> list[VcsFileStatus]:
    """GET /vcs/status."""
    return await client.call(VCS_STATUS)


async def diff(client: Client, args: AskDiff) -> list[VcsFileDiff]:
    """GET /vcs/diff.

    `mode`: against the last commit, or against where the branch left the default one. `context`: lines around.
    """
    return await client.call(VCS_DIFF, **asdict(args))
