"""The operations of `lsp`.

Written by scripts/generate_client.py; not to be edited.
"""

from codeloop.client.client import Client
from codeloop.schema.operation import LSP_STATUS
from codeloop.schema.project import LspStatus


async def status(client: Client) -> list[LspStatus]:
    """GET /lsp."""
    return await client.call(LSP_STATUS)
