"""Finds the tool and the subagent that a permission request or a question comes from."""

from contextlib import suppress

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.session_messages import MESSAGE_GET, MessageId
from codeloop.schema.api.session_requests import SESSION_GET, SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.part import ToolPart
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest

MAX_LABEL = 80
"""Characters of a name, a title or a path within the text of a request."""


class Requester(Struct, frozen=True):
    """The tool that a request comes from, and its subagent;
    "" for an unknown tool, or for no subagent.
    """

    tool: str = ""
    subagent: str = ""


async def find_requester(client: Client, request: PermissionRequest | QuestionRequest) -> Requester:
    """Look the request's tool and subagent up in its session.
    Fields that can't be found are empty.
    """
    tool = subagent = ""
    # The session or the message may be deleted while its request is still open: the request
    # is then shown without them.
    with suppress(OperationError):
        session = await client.call(SESSION_GET, SessionId(session_id=request.session_id))
        if session.parent_id is not None:
            subagent = (
                one_line(f"subagent {session.agent or ''}", MAX_LABEL)
                + f" “{one_line(session.title, MAX_LABEL)}”"
            )
    if request.tool is not None:
        message_id = MessageId(session_id=request.session_id, message_id=request.tool.message_id)
        with suppress(OperationError):
            message = await client.call(MESSAGE_GET, message_id)
            for part in message.parts:
                if isinstance(part, ToolPart) and part.call_id == request.tool.call_id:
                    tool = one_line(part.tool, MAX_LABEL)
                    break
    return Requester(tool, subagent)
