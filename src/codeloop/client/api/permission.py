"""The operations of `permission`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import PERMISSION_LIST, PERMISSION_REPLY, PERMISSION_RESPOND
from codeloop.schema.prompts import AnswerPermission, RespondPermission
from codeloop.schema.rules import PermissionRequest


async def list_(client: Client) -> list[PermissionRequest]:
    """GET /permission."""
    return await client.call(PERMISSION_LIST)


async def reply(client: Client, args: AnswerPermission) -> bool:
    """POST /permission/{requestID}/reply.

    Answers a question; `message` goes to the model with a rejection, and the turn then goes on.
    """
    return await client.call(PERMISSION_REPLY, **asdict(args))


async def respond(client: Client, args: RespondPermission) -> bool:
    """POST /session/{sessionID}/permissions/{permissionID}.

    Answers a question; the older form.
    """
    return await client.call(PERMISSION_RESPOND, **asdict(args))
