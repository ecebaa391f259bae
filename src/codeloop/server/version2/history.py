"""Handlers of version 2: the messages of a session, and taking them back."""

from typing import NoReturn

import msgspec

from codeloop.app.handlers.changes.final_undo import make_discard_events
from codeloop.schema.api.session_messages import (
    MESSAGE_GET,
    SESSION_MESSAGES,
    ListMessages,
    MessageId,
)
from codeloop.schema.api.session_undo import SESSION_REVERT, RevertSession
from codeloop.schema.errors import OperationError
from codeloop.schema.part import CompactionPart
from codeloop.schema.wire import JSON
from codeloop.server.version2 import session_arguments as takes
from codeloop.server.version2.pages import select_page
from codeloop.server.version2.request import Request2, TaggedError, make_refusal
from codeloop.server.version2.session_forms import translate_message, translate_messages


async def list_messages(request: Request2, args: takes.ListMessages2) -> JSON:
    """Return a page of a session's messages."""
    if args.cursor is not None and args.order is not None:
        raise make_refusal("A cursor has its order. Leave `order` out.")
    messages = [
        each
        for each in translate_messages(
            await request.call(SESSION_MESSAGES, ListMessages(session_id=args.session_id))
        )
        if args.type in {None, each["type"]}
    ]
    ids = [each["id"] for each in messages]
    page, cursor = select_page(messages, ids, args.limit, args.order, args.cursor)
    return {"data": list(page), "cursor": cursor}


async def get_message(request: Request2, args: takes.MessageId2) -> JSON:
    """Return a message."""
    await request.find_session(args.session_id)
    message_id = MessageId(session_id=args.session_id, message_id=args.message_id)
    try:
        return translate_message(await request.call(MESSAGE_GET, message_id))
    except OperationError as error:
        raise _make_message_not_found(args.session_id, args.message_id) from error


async def list_context_messages(request: Request2, args: takes.SessionId2) -> list[JSON]:
    """Return the messages from the last compaction on: its request, its summary, and what follows;
    without one, all.
    """
    messages = await request.call(SESSION_MESSAGES, ListMessages(session_id=args.session_id))
    start = 0
    for position, message in enumerate(messages):
        if any(isinstance(part, CompactionPart) for part in message.parts):
            start = position
    return translate_messages(messages[start:])


async def refuse_history(request: Request2, args: takes.SessionId2) -> NoReturn:
    """Refuse: the preview's routes of events are not offered."""
    await request.find_session(args.session_id)
    raise make_refusal(
        "The events of a session are at /api/experimental/session/{id}/log, and at /api/event as they happen."
    )


async def stage_revert(request: Request2, args: takes.StageRevert) -> JSON:
    """Revert messages and files from a message on; the revert can be cleared or committed."""
    if args.files is False:
        raise make_refusal("Messages are reverted together with the files. Leave `files` out.")
    project, _ = await request.find_session(args.session_id)
    if project.store.read_conversation(args.session_id).find_entry(args.message_id) is None:
        raise _make_message_not_found(args.session_id, args.message_id)
    session = await request.call(
        SESSION_REVERT, RevertSession(session_id=args.session_id, message_id=args.message_id)
    )
    return (
        {"messageID": args.message_id}
        if session.revert is None
        else msgspec.to_builtins(session.revert)
    )


async def commit_revert(request: Request2, args: takes.SessionId2) -> None:
    """Make a revert final, as the next prompt would."""
    project, _ = await request.find_session(args.session_id)
    project.runs.check_free(args.session_id)
    # No turn may start while messages are removed.
    async with project.runs.lock_session(args.session_id):
        events = make_discard_events(project.store, args.session_id)
        if events:
            project.store.append(*events)


def _make_message_not_found(session_id: str, message_id: str) -> TaggedError:
    text = f"Message not found: {message_id}"
    return TaggedError(
        "MessageNotFoundError", 404, text, sessionID=session_id, messageID=message_id
    )
