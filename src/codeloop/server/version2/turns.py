"""Handlers of version 2: what begins, interrupts and awaits turns."""

import asyncio
import mimetypes
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from codeloop.app.handlers.project.agents import find_commands
from codeloop.app.handlers.session.prompt import find_sent_prompt
from codeloop.app.handlers.session.store_prompt import check_prompt
from codeloop.extend.skills import format_skill, load_skill
from codeloop.schema.api.session_inputs import (
    ABORT,
    COMMAND,
    PROMPT,
    PROMPT_ASYNC,
    SESSION_SHELL,
    SUMMARIZE,
    AgentPartInput,
    FilePartInput,
    InvokeCommand,
    PartInput,
    Prompt,
    RunShell,
    Summarize,
    TextPartInput,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import SHELL_TIMEOUT_MAX
from codeloop.schema.message import Session
from codeloop.schema.wire import JSON, encode_json
from codeloop.server.version2 import session_arguments as takes
from codeloop.server.version2.inbox import describe_item, hold_back
from codeloop.server.version2.request import Request2, TaggedError, make_not_found, make_refusal
from codeloop.server.version2.session_forms import make_object
from codeloop.server.version2.sessions import read_entries

_TURN_POLL_SECONDS = 0.05


def _make_parts(text: str, attachments: takes.Attachments) -> list[PartInput]:
    parts: list[PartInput] = [TextPartInput(text=text)] if text else []
    parts += [
        FilePartInput(mime=_guess_mime(each.uri, each.name), url=each.uri, filename=each.name)
        for each in attachments.files
    ]
    parts += [AgentPartInput(name=each.name) for each in attachments.agents]
    return parts


def _guess_mime(uri: str, name: str | None) -> str:
    """Return the media type of a file by its URI (a `data:` URI holds the type), or by its name."""
    return mimetypes.guess_type(uri)[0] or mimetypes.guess_type(name or "")[0] or "text/plain"


async def admit_prompt(request: Request2, args: takes.Prompt2) -> JSON:
    """Store a prompt and start a turn, unless `resume` is false."""
    content = args if args.prompt is None else args.prompt
    if content.text is None:
        raise make_refusal('Missing key\n  at ["text"]')
    project, _ = await request.find_session(args.session_id)
    parts = _make_parts(content.text, content)
    for skill in content.skills:
        parts.append(TextPartInput(text=await _read_skill(request, args, skill.id), synthetic=True))
    item = await _admit(request, args, parts, args.delivery or "steer")
    if args.prompt is None:
        return item
    # Version 1 numbers no prompts; the number of messages grows with each of them, too.
    count = sum(1 for _ in project.store.read_conversation(args.session_id).entries)
    preview = msgspec.to_builtins(content)
    return {**item, "admittedSeq": count, "prompt": preview, "timeCreated": item["time"]["created"]}


async def admit_synthetic(request: Request2, args: takes.Synthetic2) -> JSON:
    """Store a text for the model that the user has not typed."""
    await request.find_session(args.session_id)
    part = TextPartInput(text=args.text, synthetic=True, metadata=args.metadata)
    return await _admit(request, args, [part], args.delivery or "steer")


async def _admit(
    request: Request2,
    args: takes.Prompt2 | takes.Synthetic2,
    parts: Sequence[PartInput],
    delivery: takes.Delivery,
) -> JSON:
    """Store a prompt, or hold it back while a turn runs that it is not for."""
    project, session = await request.find_session(args.session_id)
    message_id = args.id or new_id("msg")
    prompt = Prompt(
        session_id=args.session_id,
        parts=parts,
        message_id=message_id,
        no_reply=args.resume is False,
        system=_format_entries(session),
    )
    is_queued = delivery == "queue" and project.runs.is_running(args.session_id)
    if is_queued and find_sent_prompt(project, prompt) is None:
        await check_prompt(project, prompt)
        item = describe_item(prompt, now_ms(), "queue")
        hold_back(request, project, prompt, item)
        return item
    await _send(request, prompt)
    entry = project.store.read_conversation(args.session_id).find_entry(message_id)
    created = now_ms() if entry is None else entry.info.time.created
    return describe_item(prompt, created, delivery)


async def _send(request: Request2, prompt: Prompt) -> None:
    """Store a prompt, and start a turn unless it says not to."""
    if prompt.no_reply:
        await request.call(PROMPT, prompt)
    else:
        await request.call(PROMPT_ASYNC, prompt)


def _format_entries(session: Session) -> str | None:
    """Return the instructions that clients have set for a session as text for the model."""
    texts = [
        f"{key}: {value if isinstance(value, str) else encode_json(value).decode()}"
        for key, value in read_entries(session).items()
    ]
    return "\n".join(texts) or None


async def start_command(request: Request2, args: takes.Command2) -> None:
    """Start a turn by a command."""
    project, session = await request.find_session(args.session_id)
    if args.name not in find_commands(project):
        raise make_not_found("Command", args.name, command=args.name)
    project.store.leases.check_free(session.id)
    files = [each for each in _make_parts("", args) if isinstance(each, FilePartInput)]
    command = InvokeCommand(
        session_id=session.id, command=args.name, arguments=args.text, parts=files
    )
    request.state.run(request.call(COMMAND, command))


async def start_skill(request: Request2, args: takes.Skill2) -> None:
    """Hand a skill to the model, which goes on with it unless `resume` is false."""
    text = await _read_skill(request, args, args.id)
    resume = args.resume is not False
    prompt = Prompt(
        session_id=args.session_id,
        parts=[TextPartInput(text=text, synthetic=True)],
        no_reply=not resume,
    )
    await _send(request, prompt)


async def _read_skill(request: Request2, args: Any, name: str) -> str:
    project, _ = await request.find_session(args.session_id)
    skill_file = project.settings.skills.by_name.get(name)
    if skill_file is None:
        raise make_not_found("Skill", name, skill=name)
    return format_skill(load_skill(skill_file), str)


async def start_shell_command(request: Request2, args: takes.Shell2) -> None:
    """Run a command line of the user in a session; the result becomes a message."""
    project, session = await request.find_session(args.session_id)
    project.runs.check_free(session.id)
    if project.runs.is_running(session.id):
        raise TaggedError(
            "ConflictError", 409, f"Session {session.id} is busy.", resource=session.id
        )
    command = RunShell(session_id=session.id, command=args.command, message_id=args.id)
    work = request.state.run(request.call(SESSION_SHELL, command))
    # What is refused is refused before anything waits.
    await asyncio.wait([work], timeout=_TURN_POLL_SECONDS)
    if work.done():
        work.result()


async def compact_session(request: Request2, args: takes.Compact2) -> JSON:
    """Begin to replace the conversation by a summary, with the session's own model."""
    project, session = await request.find_session(args.session_id)
    if session.model is None:
        raise make_refusal("The session has no model yet: it has no messages.")
    project.runs.check_free(session.id)
    summarize = Summarize(
        session_id=session.id, provider_id=session.model.provider_id, model_id=session.model.id
    )
    before = len(project.store.read_conversation(session.id).entries)
    work = request.state.run(request.call(SUMMARIZE, summarize))
    await asyncio.wait([work], timeout=_TURN_POLL_SECONDS)
    if work.done() and work.exception() is not None:
        work.result()
    entries = project.store.read_conversation(session.id).entries[before:]
    return {
        "id": entries[0].info.id if entries else args.id or new_id("msg"),
        "sessionID": session.id,
        "time": {"created": now_ms()},
        "type": "compaction",
        "payload": {},
        "delivery": args.delivery or "steer",
    }


async def wait_for_turn(request: Request2, args: takes.SessionId2) -> None:
    """Wait until no turn runs, for SHELL_TIMEOUT_MAX at most."""
    project, _ = await request.find_session(args.session_id)
    end = time.monotonic() + SHELL_TIMEOUT_MAX.seconds
    while project.runs.is_running(args.session_id) or args.session_id in request.state.waiting:
        if time.monotonic() > end:
            raise TaggedError(
                "ServiceUnavailableError", 503, "The turn still runs. Ask again.", service="wait"
            )
        await asyncio.sleep(_TURN_POLL_SECONDS)


async def interrupt_turn(request: Request2, args: takes.Interrupt2) -> JSON:
    """End the turn that runs, if one does."""
    project, session = await request.find_session(args.session_id)
    was_running = project.runs.is_working_on(session.id) or session.id in project.store.statuses
    await request.call(ABORT, SessionId(session_id=session.id))
    return make_object(interrupted=was_running)
