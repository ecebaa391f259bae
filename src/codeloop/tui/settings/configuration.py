"""Reads the project's configuration through its client, which may be of another machine."""

from codeloop.client.client import Client
from codeloop.schema.api.config import CONFIG_GET, CONFIG_SETTINGS
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import JSON


async def read_configuration(client: Client) -> JSON:
    """Return the merged configuration; that of a server of OpenCode has none
    of codeloop's own keys.
    """
    # A server of OpenCode knows only the second operation.
    try:
        return await client.call(CONFIG_SETTINGS, NoArguments())
    except OperationError:
        return await client.call(CONFIG_GET, NoArguments())
