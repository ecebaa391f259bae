"""The operations of `config`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import CONFIG_GET, CONFIG_PROVIDERS, CONFIG_UPDATE
from codeloop.schema.project import UpdateConfig
from codeloop.schema.providers import UsableProviders
from codeloop.schema.wire import JSON


async def get(client: Client) -> JSON:
    """GET /config."""
    return await client.call(CONFIG_GET)


async def update(client: Client, args: UpdateConfig) -> JSON:
    """PATCH /config.

    Puts settings into the project's configuration file.
    """
    return await client.call(CONFIG_UPDATE, **asdict(args))


async def providers(client: Client) -> UsableProviders:
    """GET /config/providers."""
    return await client.call(CONFIG_PROVIDERS)
