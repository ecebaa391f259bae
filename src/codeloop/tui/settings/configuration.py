"""The project's configuration as its server tells it."""

from codeloop.client.client import Client
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import CONFIG_GET, CONFIG_SETTINGS, NoArguments
from codeloop.schema.wire import JSON


async def configuration_of(client: Client) -> JSON:
    """Return the merged configuration; the reference's server knows nothing of what is only codeloop's."""
    try:
        return await client.call(CONFIG_SETTINGS, NoArguments())
    except OperationError:
        return await client.call(CONFIG_GET, NoArguments())
