"""The operations of `part`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.operation import PART_DELETE, PART_UPDATE
from codeloop.schema.part import Part
from codeloop.schema.sessions import OfOnePart, UpdatePart


async def update(client: Client, args: UpdatePart) -> Part:
    """PATCH /session/{sessionID}/message/{messageID}/part/{partID}.

    Puts a whole part in the place of the one with its id.
    """
    return await client.call(PART_UPDATE, **asdict(args))


async def delete(client: Client, args: OfOnePart) -> bool:
    """DELETE /session/{sessionID}/message/{messageID}/part/{partID}.

    Names a part.
    """
    return await client.call(PART_DELETE, **asdict(args))
