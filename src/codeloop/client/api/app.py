"""The operations of `app`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.agent import Agent
from codeloop.schema.operation import AGENT_LIST, LOG, SKILL_LIST
from codeloop.schema.project import Log
from codeloop.schema.skill import Skill


async def agents(client: Client) -> list[Agent]:
    """GET /agent."""
    return await client.call(AGENT_LIST)


async def skills(client: Client) -> list[Skill]:
    """GET /skill."""
    return await client.call(SKILL_LIST)


async def log(client: Client, args: Log) -> bool:
    """POST /log.

    A line for the server's log.
    """
    return await client.call(LOG, **asdict(args))
