"""Prompts: what a person says becomes a stored message, and the session's turn is woken."""

import asyncio
import re
from collections.abc import Sequence

from codeloop.agent.compact import room_of
from codeloop.agent.engine import Policy, model_ref
from codeloop.agent.moves import Stop
from codeloop.app.attach import attached
from codeloop.app.handlers.revert import discard_reverted
from codeloop.app.project import Project
from codeloop.extend.agents import parse_ref
from codeloop.kit import fault
from codeloop.schema.agent import Agent
from codeloop.schema.errors import OperationError
from codeloop.schema.event import MessageInfo, MessageUpdated, PartInfo, PartUpdated, SessionInfo, SessionUpdated
from codeloop.schema.ids import Prefix, is_id, new_id, now_ms
from codeloop.schema.limits import CHOSEN_ID
from codeloop.schema.live import SessionDiff, SessionDiffs
from codeloop.schema.message import AssistantMessage, ModelRef, Session, SessionModel, UserMessage, UserTime
from codeloop.schema.part import CompactionPart, Part
from codeloop.schema.prompts import (
    FileInput,
    MessageWithParts,
    Prompt,
    RunLimits,
    RunShell,
    Summarize,
    TextInput,
    TurnEnd,
)
from codeloop.schema.rules import Rule
from codeloop.schema.sessions import OfOneSession
from codeloop.schema.wire import replace
from codeloop.store.conversation import next_created

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


async def prompt(project: Project, args: Prompt) -> MessageWithParts:
    """Store a prompt, run the turn and give its last answer. The turn goes on when the caller goes away."""
    message, parts = await _stored(project, args)
    if args.no_reply:
        return MessageWithParts(info=message, parts=parts)
    stop = await asyncio.shield(project.runs.wake(args.session_id, policy_of(args.limits, message, project)))
    return _answer(project, args.session_id, stop)


async def prompt_async(project: Project, args: Prompt) -> None:
    """Store a prompt and start the turn."""
    message, _ = await _stored(project, args)
    if not args.no_reply:
        project.runs.wake(args.session_id, policy_of(args.limits, message, project))


async def summarize(project: Project, args: Summarize) -> bool:
    """Put a summary in the place of the conversation; true when it is done."""
    session = project.store.session(args.session_id)
    project.store.leases.check(session.id)
    project.runs.check_free(session.id)
    model = ModelRef(provider_id=args.provider_id, model_id=args.model_id)
    project.models.open(model_ref(model))
    message = UserMessage(
        id=new_id("msg"),
        session_id=session.id,
        time=UserTime(created=next_created(project.store.recent(session.id), now_ms())),
        agent=session.agent or "build",
        model=model,
    )
    part = CompactionPart(id=new_id("prt"), session_id=session.id, message_id=message.id, auto=args.auto)
    project.store.append(
        MessageUpdated(properties=MessageInfo(session_id=session.id, info=message)),
        PartUpdated(properties=PartInfo(session_id=session.id, part=part, time=now_ms())),
    )
    stop = await asyncio.shield(project.runs.wake(session.id, policy_of(None, message, project)))
    if stop.reason != "done":
        kind = "UnknownError" if stop.reason == "error" else "BadRequest"
        raise OperationError(kind, f"The conversation was not summarised: {stop.message or stop.reason}")
    return True


async def abort(project: Project, args: OfOneSession) -> bool:
    """Stop a session's turn, if one runs."""
    await project.runs.abort(args.session_id)
    return True


async def _stored(project: Project, args: Prompt) -> tuple[UserMessage, list[Part]]:
    """Store a prompt; an abort ends what comes before that, such as reading a large file."""
    return await project.runs.before_turn(args.session_id, asyncio.create_task(_store(project, args)))


async def _store(project: Project, args: Prompt) -> tuple[UserMessage, list[Part]]:
    session = project.store.session(args.session_id)
    project.store.leases.check(session.id)
    _check_format(args)
    part_ids = [given.id for given in args.parts if given.id is not None]
    check_ids(project, args.message_id, part_ids)
    agent = project.engine.agent(args.agent or session.agent or project.setting.config.default_agent or "build")
    model = await model_of(project, args, session, agent)
    project.models.open(model_ref(model))
    message = UserMessage(
        id=args.message_id or new_id("msg"),
        session_id=session.id,
        time=UserTime(created=next_created(project.store.recent(session.id), now_ms())),
        agent=agent.name,
        model=model,
        system=args.system,
        tools=args.tools,
        format=args.format,
    )
    parts: list[Part] = []
    switched = switch_note(_agent_before(project, session), agent.name)
    for given in (*args.parts, *([TextInput(text=switched, synthetic=True)] if switched else [])):
        if isinstance(given, FileInput):  # reading it, and scaling it down, takes its time
            parts += await asyncio.to_thread(attached, project.workspace, message, given)
        else:
            parts += attached(project.workspace, message, given)
    await fault.reach("prompt.store")
    project.runs.check_free(session.id)
    check_ids(project, args.message_id, part_ids)  # once more: reading files took its time
    discarded = discard_reverted(project.store, session.id)
    session = project.store.session(session.id)  # a running turn may have changed it meanwhile
    for event in discarded:
        if isinstance(event, SessionUpdated):
            session = event.properties.info
    session = replace(
        session,
        agent=agent.name,
        model=SessionModel(id=model.model_id, provider_id=model.provider_id, variant=model.variant),
        permission=_with_tools(session, args.tools),
        time=replace(session.time, updated=now_ms()),
    )
    project.store.append(
        *discarded,
        MessageUpdated(properties=MessageInfo(session_id=session.id, info=message)),
        *(PartUpdated(properties=PartInfo(session_id=session.id, part=part, time=now_ms())) for part in parts),
        SessionUpdated(properties=SessionInfo(session_id=session.id, info=session)),
    )
    if discarded:  # nothing is undone any more
        project.store.whisper(SessionDiff(properties=SessionDiffs(session_id=session.id, diff=[])))
    return message, parts


def _agent_before(project: Project, session: Session) -> str | None:
    entries = project.store.recent(session.id).entries
    return next((entry.info.agent for entry in reversed(entries) if isinstance(entry.info, UserMessage)), None)


def switch_note(before: str | None, now: str) -> str | None:
    """Give what the model is told when a prompt is for another agent than the one before it; None: nothing."""
    if before is None or before == now:
        return None
    match before, now:
        case _, "plan":
            return "From here on you plan: change nothing but plan files. What was allowed before no longer is."
        case "plan", _:
            return f"Planning is over: you are the agent {now} now and may change files. A plan, if agreed, holds."
        case _:
            return f"You are the agent {now} now; what was said of the agent {before} no longer holds."


def check_ids(project: Project, message_id: str | None, parts: Sequence[str]) -> None:
    """Refuse ids of a client's own choice that are none, or that are in use: what they name would be lost.

    Raises OperationError.
    """
    named: list[tuple[str, Prefix, str]] = [("parts.id", "prt", each) for each in parts]
    if message_id is not None:
        named.append(("messageID", "msg", message_id))
    for field, prefix, value in named:
        if not is_id(value, prefix):
            raise OperationError("BadRequest", f"{field} must begin with {prefix}: {value[: CHOSEN_ID.value]}")
        if len(value) > CHOSEN_ID.value or not _PLAIN.fullmatch(value):
            raise OperationError(
                "BadRequest", f"{field} must be {prefix}_ and letters or digits, {CHOSEN_ID.value} characters at most."
            )
    messages = [message_id] if message_id is not None else []
    if (messages or parts) and (len(set(parts)) < len(parts) or project.store.queries.taken((), messages, parts)):
        raise OperationError(
            "BadRequest", "messageID, or the id of a part, is in use. Choose another, or leave it out."
        )


def _check_format(args: Prompt) -> None:
    """Refuse an output format that is not offered. Raises OperationError."""
    if args.format is not None and args.format.get("type") != "text":
        raise OperationError("BadRequest", "format: only the type text is offered. Ask for JSON in the prompt's words.")


async def model_of(project: Project, args: Prompt | RunShell, session: Session, agent: Agent) -> ModelRef:
    """Give the model to use: as asked for, else the agent's when the agent was, else the session's, else the default.

    Raises CodeloopError when there is none.
    """
    model = await _chosen(project, args, session, agent)
    variant = args.variant if isinstance(args, Prompt) else None
    return replace(model, variant=variant) if variant is not None else model


async def _chosen(project: Project, args: Prompt | RunShell, session: Session, agent: Agent) -> ModelRef:
    if args.model is not None:
        return args.model
    if session.model is not None and (args.agent is None or agent.model is None):
        return ModelRef(provider_id=session.model.provider_id, model_id=session.model.id, variant=session.model.variant)
    return agent.model or parse_ref(await project.models.default(project.setting.config.model))


def _with_tools(session: Session, tools: dict[str, bool] | None) -> list[Rule] | None:
    if not tools:
        return session.permission
    rules = [
        Rule(permission=name, pattern="*", action="allow" if allowed else "deny") for name, allowed in tools.items()
    ]
    return [*(session.permission or ()), *rules]


def policy_of(limits: RunLimits | None, message: UserMessage, project: Project) -> Policy:
    """Give what bounds the turn of a prompt. Raises CodeloopError when its model can't be had."""
    limits = limits or RunLimits()
    agent = project.engine.agent(message.agent)
    bounds = [steps for steps in (limits.steps, agent.steps) if steps is not None]
    compaction = project.setting.config.compaction
    info = project.models.open(model_ref(message.model)).info
    return Policy(
        steps=min(bounds, default=None),
        cost=limits.cost,
        cost_before=project.store.session(message.session_id).cost or 0.0,
        tokens=limits.tokens,
        room=room_of(info, compaction.reserved),
        compact=compaction.auto and limits.compact,
        attended=limits.attended,
    )


def _answer(project: Project, session_id: str, stop: Stop) -> MessageWithParts:
    entries = project.store.recent(session_id).entries
    if not entries:
        raise OperationError("NotFoundError", "The prompt was cancelled before anything answered it.")
    last = next((entry for entry in reversed(entries) if isinstance(entry.info, AssistantMessage)), entries[-1])
    return MessageWithParts(
        info=last.info, parts=list(last.parts), stop=TurnEnd(reason=stop.reason, message=stop.message)
    )
