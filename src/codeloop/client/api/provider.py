"""The operations of `provider`.

Written by scripts/generate_client.py; not to be edited.
"""

from codeloop.client.client import Client
from codeloop.schema.operation import PROVIDER_AUTH, PROVIDER_LIST
from codeloop.schema.providers import AuthMethod, KnownProviders


async def list_(client: Client) -> KnownProviders:
    """GET /provider."""
    return await client.call(PROVIDER_LIST)


async def auth(client: Client) -> dict[str, list[AuthMethod]]:
    """GET /provider/auth."""
    return await client.call(PROVIDER_AUTH)
