"""Finds which tool and subagent ask a question."""

from contextlib import suppress

from codeloop.client.client import Client
from codeloop.client.permission_text import LABEL, Asking
from codeloop.kit.terminal_text import one_line
from codeloop.schema.api.session_requests import MessageId, SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import MESSAGE_GET, SESSION_GET
from codeloop.schema.part import ToolPart
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.question import QuestionRequest


async def origin(client: Client, request: PermissionRequest | QuestionRequest) -> Asking:
    """Return which tool asks, and which subagent; empty where that can't be found."""
    tool = subagent = ""
    with suppress(OperationError):
        session = await client.call(SESSION_GET, SessionId(session_id=request.session_id))
        if session.parent_id is not None:
            subagent = one_line(f"subagent {session.agent or ''}", LABEL) + f" “{one_line(session.title, LABEL)}”"
    if request.tool is not None:
        message_id = MessageId(session_id=request.session_id, message_id=request.tool.message_id)
        with suppress(OperationError):
            message = await client.call(MESSAGE_GET, message_id)
            call_id = request.tool.call_id
            parts = (part for part in message.parts if isinstance(part, ToolPart) and part.call_id == call_id)
            tool = next((one_line(part.tool, LABEL) for part in parts), "")
    return Asking(tool, subagent)
