"""The operations of `tool`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import TOOL_IDS, TOOL_LIST
from codeloop.schema.project import AskTools, ToolItem


async def ids(client: Client) -> list[str]:
    """GET /experimental/tool/ids."""
    return await client.call(TOOL_IDS)


async def list_(client: Client, args: AskTools) -> list[ToolItem]:
    """GET /experimental/tool.

    Asks for the tools that a model is offered.
    """
    return await client.call(TOOL_LIST, **asdict(args))
