"""Handlers of version 2: prompts that no turn has taken yet."""

import asyncio
import logging
from typing import Literal

from codeloop.app.project import Project
from codeloop.schema.api.session_inputs import (
    PROMPT_ASYNC,
    FilePartInput,
    MessageWithParts,
    Prompt,
    TextPartInput,
)
from codeloop.schema.api.session_messages import (
    MESSAGE_DELETE,
    SESSION_QUEUED,
    MessageId,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError
from codeloop.schema.part import Part, TextPart
from codeloop.schema.wire import JSON
from codeloop.server.version2 import session_arguments as takes
from codeloop.server.version2.request import Request2, TaggedError
from codeloop.server.version2.session_forms import make_object, translate_prompt_parts
from codeloop.server.version2.state import WaitingPrompt

log = logging.getLogger("codeloop.server")
_POLL_SECONDS = 0.05


def describe_item(prompt: Prompt, created: int, delivery: Literal["steer", "queue"]) -> JSON:
    """Return a prompt as an item of the inbox. `created`: in ms since the epoch."""
    texts = [part for part in prompt.parts if isinstance(part, TextPartInput)]
    visible = [part.text for part in texts if not part.synthetic]
    is_synthetic = bool(texts) and not visible
    files = [
        make_object(
            data=part.url.partition(",")[2] if part.url.startswith("data:") else "",
            mime=part.mime,
            source={"type": "uri", "uri": part.url},
            name=part.filename,
        )
        for part in prompt.parts
        if isinstance(part, FilePartInput)
    ]
    text = "\n".join(each.text for each in texts) if is_synthetic else "\n".join(visible)
    return {
        "id": prompt.message_id or "",
        "sessionID": prompt.session_id,
        "time": {"created": created},
        "type": "synthetic" if is_synthetic else "user",
        "payload": make_object(text=text, files=files or None),
        "delivery": delivery,
    }


def describe_message(message_id: str, session_id: str, created: int, parts: list[Part]) -> JSON:
    """Return a stored prompt as an item of the inbox."""
    texts = [part for part in parts if isinstance(part, TextPart)]
    is_synthetic = bool(texts) and all(part.synthetic for part in texts)
    payload = translate_prompt_parts(parts)
    if is_synthetic:
        payload = {"text": "\n".join(part.text for part in texts)}
    return {
        "id": message_id,
        "sessionID": session_id,
        "time": {"created": created},
        "type": "synthetic" if is_synthetic else "user",
        "payload": payload,
        "delivery": "steer",
    }


def hold_back(request: Request2, project: Project, prompt: Prompt, item: JSON) -> None:
    """Keep a prompt until the turn of its session is over."""
    waiting = request.state.waiting.get(prompt.session_id)
    is_first = waiting is None
    if waiting is None:
        waiting = request.state.waiting[prompt.session_id] = []
    elif any(each.prompt.message_id == prompt.message_id for each in waiting):
        return
    waiting.append(WaitingPrompt(prompt, item))
    request.state.announced.append(str(item["id"]))
    _publish(request, project, "session.inbox.enqueued", item, item=_strip(item))
    if is_first:
        request.state.run(_send_waiting(request, project, prompt.session_id))


def _strip(item: JSON) -> JSON:
    return {name: item[name] for name in ("type", "payload", "delivery")}


def _publish(request: Request2, project: Project, kind: str, of: JSON, **more: object) -> None:
    data = {"sessionID": of["sessionID"], "inboxID": of["id"], **more}
    request.state.publish(kind, data, project.settings.project_root.directory_name)


async def _send_waiting(request: Request2, project: Project, session_id: str) -> None:
    """Send the prompts of a session that wait, one after each turn; those that shall steer
    enter the turn that runs. One that is refused is cancelled, and the others go on.
    """
    waiting = request.state.waiting[session_id]
    try:
        while waiting:
            first = next((each for each in waiting if each.delivery == "steer"), waiting[0])
            if first.delivery == "queue" and project.runs.is_running(session_id):
                await asyncio.sleep(_POLL_SECONDS)
                continue
            # Before the call: a client may cancel others meanwhile, but this one is on its way.
            waiting.remove(first)
            try:
                await request.call(PROMPT_ASYNC, first.prompt)
            except CodeloopError as error:
                log.warning("The queued prompt %s was not sent: %s", first.item["id"], error)
                _publish(request, project, "session.inbox.cancelled", first.item)
    finally:
        del request.state.waiting[session_id]


async def list_inbox(request: Request2, args: takes.SessionId2) -> list[JSON]:
    """Return the prompts that no turn has taken yet."""
    stored = await _list_stored(request, args.session_id)
    waiting = request.state.waiting.get(args.session_id, [])
    return [
        *(
            describe_message(
                each.info.id, args.session_id, each.info.time.created, list(each.parts)
            )
            for each in stored
        ),
        *({**each.item, "delivery": each.delivery} for each in waiting),
    ]


async def _list_stored(request: Request2, session_id: str) -> list[MessageWithParts]:
    return await request.call(SESSION_QUEUED, SessionId(session_id=session_id))


async def cancel_item(request: Request2, args: takes.InboxId) -> None:
    """Take a prompt out of the inbox; one that is not there is gone already."""
    project, _ = await request.find_session(args.session_id)
    waiting = request.state.waiting.get(args.session_id, [])
    for each in waiting:
        if each.prompt.message_id == args.inbox_id:
            waiting.remove(each)
            _publish(request, project, "session.inbox.cancelled", each.item)
            return
    if any(each.info.id == args.inbox_id for each in await _list_stored(request, args.session_id)):
        message = MessageId(session_id=args.session_id, message_id=args.inbox_id)
        await request.call(MESSAGE_DELETE, message)


async def change_item(request: Request2, args: takes.ChangeInbox) -> None:
    """Change how a prompt enters a turn. One that is stored enters at the next step."""
    project, _ = await request.find_session(args.session_id)
    for each in request.state.waiting.get(args.session_id, []):
        if each.prompt.message_id == args.inbox_id:
            each.delivery = args.delivery
            kind = "session.inbox.delivery.changed"
            _publish(request, project, kind, each.item, delivery=args.delivery)
            return
    stored = await _list_stored(request, args.session_id)
    if args.delivery == "queue" or all(each.info.id != args.inbox_id for each in stored):
        message = "The prompt enters the turn at its next step, or has entered it."
        raise TaggedError("ConflictError", 409, message, resource=args.inbox_id)
