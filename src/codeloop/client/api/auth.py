"""The operations of `auth`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import AUTH_REMOVE, AUTH_SET
from codeloop.schema.providers import OfOneProvider, SetAuth


async def set_(client: Client, args: SetAuth) -> bool:
    """PUT /auth/{providerID}.

    Stores a credential of a provider; `auth` is the whole body.
    """
    return await client.call(AUTH_SET, **asdict(args))


async def remove(client: Client, args: OfOneProvider) -> bool:
    """DELETE /auth/{providerID}.

    Names a provider.
    """
    return await client.call(AUTH_REMOVE, **asdict(args))
