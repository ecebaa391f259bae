"""Messages and parts of a session: read in pages, changed and deleted."""

from base64 import b64encode
from typing import cast

import msgspec

from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.message import Message
from codeloop.schema.operation import Operation
from codeloop.schema.part import Part
from codeloop.schema.wire import Count, Wire


class MessageId(Wire):
    """Names a message."""

    session_id: str
    message_id: str


class PartId(Wire):
    """Names a part."""

    session_id: str
    message_id: str
    part_id: str


class ListMessages(Wire):
    """The newest `limit` messages (all without it), or those older than the cursor `before`."""

    session_id: str
    limit: Count | None = None
    before: str | None = None


class MessageCursor(Wire):
    """The oldest message of a page: its id, and when it was created (ms since the epoch)."""

    id: str
    time: int


def make_cursor_of_page(oldest: Message) -> str:
    """Return the cursor of a page that begins with this message: what `before` takes
    for the page of older ones.
    """
    cursor = MessageCursor(id=oldest.id, time=oldest.time.created)
    return b64encode(msgspec.json.encode(cursor)).decode()


def make_cursor_before_time(time: int) -> str:
    """Return the cursor of the page of messages that were created before a
    time (ms since the epoch).
    """
    return b64encode(msgspec.json.encode(MessageCursor(id="", time=time))).decode()


class UpdatePart(Wire):
    """Replaces the part with the same id."""

    session_id: str
    message_id: str
    part_id: str
    part: Part


# A type checker does not take a union for a type.
_PART = cast("type[Part]", Part)
SESSION_QUEUED = Operation(
    "session.queued",
    "GET",
    "/session/{sessionID}/queued",
    SessionId,
    list[MessageWithParts],
    "session.message:list_queued",
)
SESSION_MESSAGES = Operation(
    "session.messages",
    "GET",
    "/session/{sessionID}/message",
    ListMessages,
    list[MessageWithParts],
    "session.message:list_messages",
)
MESSAGE_GET = Operation(
    "session.message",
    "GET",
    "/session/{sessionID}/message/{messageID}",
    MessageId,
    MessageWithParts,
    "session.message:get_message",
)
MESSAGE_DELETE = Operation(
    "session.deleteMessage",
    "DELETE",
    "/session/{sessionID}/message/{messageID}",
    MessageId,
    bool,
    "session.message:delete_message",
)
PART_UPDATE = Operation(
    "part.update",
    "PATCH",
    "/session/{sessionID}/message/{messageID}/part/{partID}",
    UpdatePart,
    _PART,
    "session.message:update_part",
    body="part",
)
PART_DELETE = Operation(
    "part.delete",
    "DELETE",
    "/session/{sessionID}/message/{messageID}/part/{partID}",
    PartId,
    bool,
    "session.message:delete_part",
)
