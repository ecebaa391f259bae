"""The operations of `formatter`.

Written by scripts/generate_client.py; not to be edited.
"""

from codeloop.client.client import Client
from codeloop.schema.operation import FORMATTER_STATUS
from codeloop.schema.project import FormatterStatus


async def status(client: Client) -> list[FormatterStatus]:
    """GET /formatter."""
    return await client.call(FORMATTER_STATUS)
