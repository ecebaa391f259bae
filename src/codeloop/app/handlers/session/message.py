"""Handlers that read, change and delete messages and parts.
During a turn only queued prompts can be changed.
"""

import base64
import binascii
from collections.abc import Sequence

import msgspec

from codeloop.app.project import Project
from codeloop.schema.api.session_inputs import MessageWithParts
from codeloop.schema.api.session_messages import (
    ListMessages,
    MessageCursor,
    MessageId,
    PartId,
    UpdatePart,
    make_cursor_of_page,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import OperationError
from codeloop.schema.event import (
    MessageGone,
    MessageRemoved,
    PartGone,
    PartRemoved,
    make_part_updated,
)
from codeloop.schema.message import NO_TOKENS, AssistantMessage, Session
from codeloop.schema.part import Part
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry, list_queued_prompts


async def list_messages(project: Project, args: ListMessages) -> list[MessageWithParts]:
    """Return messages of a session, oldest first: all, or a page of them."""
    return read_page(project, args)[0]


def read_page(project: Project, args: ListMessages) -> tuple[list[MessageWithParts], str | None]:
    """Return messages, oldest first, and the cursor for older ones; None if there are none.

    Raises OperationError for an unknown session, a limit below 1, or an invalid cursor.
    """
    if args.limit is None and args.before is None:
        return _convert_entries(project.store.read_conversation(args.session_id).entries), None
    project.store.get_session(args.session_id)
    if args.limit is not None and args.limit < 1:
        raise OperationError("BadRequest", f"limit is {args.limit}; it must be at least 1.")
    before = None if args.before is None else _parse_cursor(args.before)
    entries, has_more = project.store.queries.read_message_page(args.session_id, args.limit, before)
    return _convert_entries(entries), make_cursor_of_page(
        entries[0].info
    ) if has_more and entries else None


def _parse_cursor(before: str) -> tuple[int, str]:
    # Clients may have dropped the padding, or written the cursor in either alphabet of base64.
    padded = before + "=" * (-len(before) % 4)
    try:
        cursor = msgspec.json.decode(
            base64.b64decode(padded, altchars=b"-_" if set(before) & set("-_") else None),
            type=MessageCursor,
        )
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError) as error:
        raise OperationError(
            "BadRequest", "before is not a cursor: take it from the header x-next-cursor."
        ) from error
    # SQLite's integers have 64 bits; a larger one would be an error there.
    if abs(cursor.time) >= 1 << 53:
        raise OperationError("BadRequest", "before is not a cursor: its time is out of range.")
    return cursor.time, cursor.id


def _convert_entries(entries: Sequence[Entry]) -> list[MessageWithParts]:
    return [MessageWithParts(info=entry.info, parts=list(entry.parts)) for entry in entries]


async def get_message(project: Project, args: MessageId) -> MessageWithParts:
    """Return one message."""
    return _convert_entries([_find_entry(project, args.session_id, args.message_id)])[0]


async def list_queued(project: Project, args: SessionId) -> list[MessageWithParts]:
    """Return the prompts that are queued for the running turn,
    whether that runs here or in another process.
    """
    project.store.get_session(args.session_id)
    if (
        not project.runs.is_running(args.session_id)
        and project.store.leases.find_other_holder(args.session_id) is None
    ):
        return []
    return _convert_entries(list_queued_prompts(project.store.read_conversation(args.session_id)))


async def delete_message(project: Project, args: MessageId) -> bool:
    """Delete a message with its parts; the usage of an answer is subtracted
    from the session's sums.

    Deleting a queued prompt cancels it. Raises OperationError: NotFoundError, or SessionBusyError
    if the running turn uses the message.
    """
    entry = _find_changeable(project, args.session_id, args.message_id)
    event = MessageGone(session_id=args.session_id, message_id=args.message_id)
    message = entry.info

    def subtract_usage(session: Session) -> Session:
        if not isinstance(message, AssistantMessage):
            return session
        cost = max((session.cost or 0.0) - message.cost, 0.0)
        return replace(
            session, cost=cost, tokens=(session.tokens or NO_TOKENS).plus(message.all_tokens, -1)
        )

    project.store.update_session(args.session_id, subtract_usage, MessageRemoved(properties=event))
    return True


async def update_part(project: Project, args: UpdatePart) -> Part:
    """Replace a part by another one with the same id, for example to edit a queued prompt.

    Raises as `delete_message` does.
    """
    part = args.part
    if (part.id, part.message_id, part.session_id) != (
        args.part_id,
        args.message_id,
        args.session_id,
    ):
        raise OperationError(
            "BadRequest", "The part is of another message or session than the path names."
        )
    _check_part(_find_changeable(project, args.session_id, args.message_id), args.part_id)
    project.store.append(make_part_updated(part))
    return part


async def delete_part(project: Project, args: PartId) -> bool:
    """Delete a part. Raises as `delete_message` does."""
    _check_part(_find_changeable(project, args.session_id, args.message_id), args.part_id)
    event = PartGone(session_id=args.session_id, message_id=args.message_id, part_id=args.part_id)
    project.store.append(PartRemoved(properties=event))
    return True


def _find_entry(project: Project, session_id: str, message_id: str) -> Entry:
    entry = project.store.read_conversation(session_id).find_entry(message_id)
    if entry is None:
        raise OperationError("NotFoundError", f"Message not found: {message_id}")
    return entry


def _check_part(entry: Entry, part_id: str) -> None:
    if all(part.id != part_id for part in entry.parts):
        raise OperationError("NotFoundError", f"Part not found: {part_id}")


def _find_changeable(project: Project, session_id: str, message_id: str) -> Entry:
    """Return a message if it may be changed: one of an idle session, or a queued prompt.
    Raises OperationError.
    """
    entry = _find_entry(project, session_id, message_id)
    project.store.leases.check_free(session_id)
    project.runs.check_free(session_id)
    if session_id in project.store.statuses and entry not in list_queued_prompts(
        project.store.read_conversation(session_id)
    ):
        raise OperationError(
            "SessionBusyError",
            f"Session {session_id} is busy and works with {message_id}. Abort its turn first.",
        )
    return entry
