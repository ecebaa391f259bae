"""Handlers of the preview: sessions (list, create, prompt, wait, revert) and their messages."""

import asyncio
import base64
import mimetypes
import time
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

import msgspec

from codeloop.app.handlers.changes.final_undo import make_discard_events
from codeloop.app.handlers.session.turn_settings import check_model
from codeloop.schema.api.session_inputs import (
    ABORT,
    PROMPT,
    PROMPT_ASYNC,
    SUMMARIZE,
    AgentPartInput,
    FilePartInput,
    PartInput,
    Prompt,
    Summarize,
    TextPartInput,
)
from codeloop.schema.api.session_messages import (
    MESSAGE_GET,
    SESSION_MESSAGES,
    ListMessages,
    MessageId,
)
from codeloop.schema.api.session_requests import (
    SESSION_CREATE,
    SESSION_EVERYTHING,
    SESSION_STATUS,
    CreateSession,
    ListAllSessions,
    SessionId,
)
from codeloop.schema.api.session_undo import SESSION_REVERT, RevertSession
from codeloop.schema.errors import OperationError
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import SHELL_TIMEOUT_MAX
from codeloop.schema.message import ModelRef
from codeloop.schema.operation import NoArguments
from codeloop.schema.part import CompactionPart
from codeloop.schema.permission import PERMISSIONS_OF_VERSION_TWO, PermissionRule
from codeloop.schema.wire import JSON, replace
from codeloop.server.preview import arguments as takes
from codeloop.server.preview.request import (
    PreviewRefused,
    PreviewRequest,
    make_refusal,
)
from codeloop.server.preview.translate import (
    translate_message,
    translate_messages,
    translate_session,
)

_MAX_SESSIONS = 10_000
"""Sessions that are read at most, to filter and sort them here."""
_TURN_POLL_SECONDS = 0.05
Item = TypeVar("Item")


class _Cursor(msgspec.Struct, frozen=True):
    """The position of a page: the id of the item beside it, the order of the list,
    and on which side the page is.

    It names an item, not an index: items that are added while a client pages through the
    list don't shift the pages.
    """

    id: str
    order: str
    is_back: bool = False


async def list_sessions(preview: PreviewRequest, args: takes.ListPreviewSessions) -> JSON:
    """Return a page of the sessions of all projects."""
    sessions = await preview.call(SESSION_EVERYTHING, ListAllSessions(limit=_MAX_SESSIONS))
    matching = [
        each
        for each in sessions
        if (args.project is None or each.project_id == args.project)
        and (args.directory is None or each.directory == args.directory)
        and (args.subpath is None or (each.path or "") == args.subpath)
        and (args.search is None or args.search.casefold() in each.title.casefold())
    ]
    # Of sessions of one millisecond the later one has the smaller id.
    matching.sort(key=lambda each: each.id, reverse=True)
    matching.sort(key=lambda each: each.time.created)
    page, cursor = _select_page(
        matching,
        [each.id for each in matching],
        limit=args.limit,
        order=args.order,
        cursor_text=args.cursor,
    )
    return {"data": [translate_session(each) for each in page], "cursor": cursor}


async def create_session(preview: PreviewRequest, args: takes.CreatePreviewSession) -> JSON:
    """Create a session in the given location."""
    if args.location is not None:
        preview = PreviewRequest(
            preview.app, preview.app.resolve_directory(args.location.directory)
        )
    rules = [
        PermissionRule(
            permission=PERMISSIONS_OF_VERSION_TWO.get(rule.action, rule.action),
            pattern=rule.resource,
            action=rule.effect,
        )
        for rule in args.permissions or ()
    ]
    created = CreateSession(
        parent_id=args.parent_id,
        title=args.title,
        agent=args.agent,
        model=args.model,
        metadata=args.metadata,
        permission=rules or None,
    )
    return translate_session(await preview.call(SESSION_CREATE, created))


async def list_active_sessions(preview: PreviewRequest, _args: NoArguments) -> JSON:
    """Return the sessions in which a turn runs."""
    active_sessions: JSON = {}
    for project in preview.app.projects:
        states = await PreviewRequest(preview.app, project.settings.project_root.directory).call(
            SESSION_STATUS, NoArguments()
        )
        active_sessions |= {session_id: {"type": "running"} for session_id in states}
    return active_sessions


async def switch_agent(preview: PreviewRequest, args: takes.SwitchAgent) -> None:
    """Choose the agent of the next turns."""
    project = await preview.get_project(args.session_id)
    project.engine.get_agent(args.agent)
    project.store.update_session(
        args.session_id, lambda session: replace(session, agent=args.agent)
    )


async def switch_model(preview: PreviewRequest, args: takes.SwitchModel) -> None:
    """Choose the model of the next turns."""
    project = await preview.get_project(args.session_id)
    check_model(project, ModelRef(provider_id=args.model.provider_id, model_id=args.model.id))
    project.store.update_session(
        args.session_id, lambda session: replace(session, model=args.model)
    )


async def admit_prompt(preview: PreviewRequest, args: takes.AdmitPrompt) -> JSON:
    """Store a prompt and start a turn, unless `resume` is false."""
    project = await preview.get_project(args.session_id)
    if args.delivery == "queue" and project.runs.is_running(args.session_id):
        message = "A turn is running, and prompts enter it at its next step. Wait for its end, or send it as steer."
        raise PreviewRefused("ConflictError", 409, message, resource=args.session_id)
    message_id = args.id or new_id("msg")
    parts: list[PartInput] = [TextPartInput(text=args.prompt.text)]
    parts += [
        FilePartInput(mime=_guess_mime(each), url=each.uri, filename=each.name)
        for each in args.prompt.files
    ]
    parts += [AgentPartInput(name=each.name) for each in args.prompt.agents]
    prompt = Prompt(
        session_id=args.session_id, parts=parts, message_id=message_id, no_reply=not args.resume
    )
    if args.resume:
        await preview.call(PROMPT_ASYNC, prompt)
    else:
        await preview.call(PROMPT, prompt)
    # Version 1 numbers no prompts; the number of messages grows with each of them, too.
    message_count = sum(1 for _ in project.store.read_conversation(args.session_id).entries)
    return {
        "admittedSeq": message_count,
        "id": message_id,
        "sessionID": args.session_id,
        "prompt": msgspec.to_builtins(args.prompt),
        "delivery": args.delivery,
        "timeCreated": now_ms(),
    }


async def compact_session(preview: PreviewRequest, args: takes.PreviewSessionId) -> None:
    """Replace the conversation by a summary, with the session's own model."""
    session = (await preview.get_project(args.session_id)).store.get_session(args.session_id)
    if session.model is None:
        raise make_refusal("The session has no model yet: it has no messages.")
    summarize = Summarize(
        session_id=session.id, provider_id=session.model.provider_id, model_id=session.model.id
    )
    await preview.call(SUMMARIZE, summarize)


async def wait_for_turn(preview: PreviewRequest, args: takes.PreviewSessionId) -> None:
    """Wait until no turn runs, for SHELL_TIMEOUT_MAX at most."""
    project = await preview.get_project(args.session_id)
    project.store.get_session(args.session_id)
    end = time.monotonic() + SHELL_TIMEOUT_MAX.seconds
    while project.runs.is_running(args.session_id):
        if time.monotonic() > end:
            raise PreviewRefused(
                "ServiceUnavailableError", 503, "The turn still runs. Ask again.", service="wait"
            )
        await asyncio.sleep(_TURN_POLL_SECONDS)


async def stage_revert(preview: PreviewRequest, args: takes.StageRevert) -> JSON:
    """Revert messages and files from a message on; the revert can be cleared or committed."""
    if not args.files:
        raise make_refusal("Messages are reverted together with the files. Leave `files` out.")
    project = await preview.get_project(args.session_id)
    if project.store.read_conversation(args.session_id).find_entry(args.message_id) is None:
        raise _make_message_not_found(args.session_id, args.message_id)
    session = await preview.call(
        SESSION_REVERT, RevertSession(session_id=args.session_id, message_id=args.message_id)
    )
    return (
        {"messageID": args.message_id}
        if session.revert is None
        else msgspec.to_builtins(session.revert)
    )


async def commit_revert(preview: PreviewRequest, args: takes.PreviewSessionId) -> None:
    """Make a revert final, as the next prompt would."""
    project = await preview.get_project(args.session_id)
    project.store.get_session(args.session_id)
    project.runs.check_free(args.session_id)
    # No turn may start while messages are removed.
    async with project.runs.lock_session(args.session_id):
        events = make_discard_events(project.store, args.session_id)
        if events:
            project.store.append(*events)


async def list_context_messages(
    preview: PreviewRequest, args: takes.PreviewSessionId
) -> list[JSON]:
    """Return the messages from the last compaction on: its request, its summary, and what follows;
    without one, all.
    """
    messages = await preview.call(SESSION_MESSAGES, ListMessages(session_id=args.session_id))
    start = 0
    for position, message in enumerate(messages):
        if any(isinstance(part, CompactionPart) for part in message.parts):
            start = position
    return translate_messages(messages[start:])


async def refuse_history(preview: PreviewRequest, args: takes.PreviewSessionId) -> NoReturn:
    """Refuse: events of version 2 are not stored."""
    (await preview.get_project(args.session_id)).store.get_session(args.session_id)
    raise make_refusal(
        "Events of version 2 are not stored. Read the session's messages, then follow /api/event."
    )


async def interrupt_turn(preview: PreviewRequest, args: takes.PreviewSessionId) -> None:
    """End the turn that runs, if one does."""
    (await preview.get_project(args.session_id)).store.get_session(args.session_id)
    await preview.call(ABORT, SessionId(session_id=args.session_id))


async def list_messages(preview: PreviewRequest, args: takes.ListPreviewMessages) -> JSON:
    """Return a page of a session's messages."""
    messages = translate_messages(
        await preview.call(SESSION_MESSAGES, ListMessages(session_id=args.session_id))
    )
    page, cursor = _select_page(
        messages,
        [each["id"] for each in messages],
        limit=args.limit,
        order=args.order,
        cursor_text=args.cursor,
    )
    return {"data": list(page), "cursor": cursor}


async def get_message(preview: PreviewRequest, args: takes.PreviewMessageId) -> JSON:
    """Return a message."""
    (await preview.get_project(args.session_id)).store.get_session(args.session_id)
    message_id = MessageId(session_id=args.session_id, message_id=args.message_id)
    try:
        return translate_message(await preview.call(MESSAGE_GET, message_id))
    except OperationError as error:
        raise _make_message_not_found(args.session_id, args.message_id) from error


def _guess_mime(file: takes.PromptFile) -> str:
    """Return the media type of a file by its URI (a `data:` URI holds the type), or by its name."""
    return (
        mimetypes.guess_type(file.uri)[0]
        or mimetypes.guess_type(file.name or "")[0]
        or "text/plain"
    )


def _make_message_not_found(session_id: str, message_id: str) -> PreviewRefused:
    text = f"Message not found: {message_id}"
    return PreviewRefused(
        "MessageNotFoundError", 404, text, sessionID=session_id, messageID=message_id
    )


def _select_page(
    items: Sequence[Item], ids: list[str], *, limit: int, order: str, cursor_text: str | None
) -> tuple[Sequence[Item], Any]:
    """Return a page of items, and the cursors of the pages before and after it.

    `items`: oldest first, with their `ids`. `cursor_text`: the cursor that was sent.
    Raises PreviewRefused.
    """
    cursor = None if cursor_text is None else _parse_cursor(cursor_text, ids)
    # A client may leave the order out of its next requests.
    order = order if cursor is None else cursor.order
    if order == "desc":
        items, ids = items[::-1], ids[::-1]
    start = 0
    if cursor is not None:
        position = ids.index(cursor.id)
        if cursor.is_back:
            start = max(position - limit, 0)
            # The first page may be shorter, but must not overlap with the next one.
            limit = min(limit, position)
        else:
            start = position + 1
    page = items[start : start + limit]
    if not page:
        return page, {}
    first, last = ids[start], ids[start + len(page) - 1]
    cursors = {"previous": _Cursor(first, order, is_back=True)} if start else {}
    if start + len(page) < len(ids):
        cursors["next"] = _Cursor(last, order)
    return page, {
        name: base64.urlsafe_b64encode(msgspec.json.encode(each)).decode()
        for name, each in cursors.items()
    }


def _parse_cursor(text: str, ids: list[str]) -> _Cursor:
    try:
        cursor = msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Cursor)
    except (ValueError, msgspec.DecodeError) as error:
        raise PreviewRefused(
            "InvalidCursorError", 400, "This is not a cursor of this server."
        ) from error
    if cursor.id not in ids:
        raise PreviewRefused(
            "InvalidCursorError", 400, "The item that the cursor names is no longer in this list."
        )
    return cursor
