"""Stores prompts: checks them, reads their files, asks hooks,
and appends the message to the session.
"""

import asyncio
import re
from collections.abc import Sequence

from codeloop.app.handlers.session.turn_settings import choose_agent, choose_model
from codeloop.app.project import Project
from codeloop.app.prompt_parts import is_mention, make_parts
from codeloop.kit import fault_injection
from codeloop.schema.api.agents import Agent
from codeloop.schema.api.session_inputs import FilePartInput, PartInput, Prompt, TextPartInput
from codeloop.schema.errors import OperationError
from codeloop.schema.event import (
    SessionUpdated,
    StoredEvent,
    make_message_updated,
    make_part_updated,
    make_session_updated,
)
from codeloop.schema.ids import Prefix, is_id, new_id, now_ms
from codeloop.schema.installation import check_installation
from codeloop.schema.limits import CHOSEN_ID
from codeloop.schema.live_events import make_session_diff
from codeloop.schema.message import (
    ModelRef,
    Session,
    SessionModel,
    UserMessage,
    UserTime,
    format_model_ref,
)
from codeloop.schema.part import TOLD_KEY, Part
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import choose_creation_time

_ID_CHARACTERS = r"[A-Za-z0-9_-]+"


def make_user_message(
    project: Project, session_id: str, agent: str, model: ModelRef, message_id: str | None = None
) -> UserMessage:
    """Make a user message whose time is later than the times of all messages of the session,
    which order them.
    """
    created = choose_creation_time(project.store.read_context(session_id), now_ms())
    return UserMessage(
        id=message_id or new_id("msg"),
        session_id=session_id,
        time=UserTime(created=created),
        agent=agent,
        model=model,
    )


async def store_prompt(project: Project, args: Prompt) -> tuple[UserMessage, list[Part]]:
    """Store a prompt, and return its message and parts. An abort of the session cancels this.
    Raises CodeloopError.
    """
    return await project.runs.run_before_turn(
        args.session_id, asyncio.create_task(_prepare_and_store(project, args))
    )


async def check_prompt(project: Project, args: Prompt) -> None:
    """Raise CodeloopError for a prompt for later that could not be stored now."""
    _, _, message = await _make_message(project, args)
    for each in args.parts:
        if isinstance(each, FilePartInput):
            await asyncio.to_thread(make_parts, project.workspace, message, each)


async def _make_message(project: Project, args: Prompt) -> tuple[Session, Agent, UserMessage]:
    """Return the session, the agent and the message of a prompt. Raises CodeloopError."""
    check_installation()
    await project.wait_for_extensions()
    session = project.store.get_session(args.session_id)
    project.store.leases.check_free(session.id)
    output_format = await _check_format(project, args)
    check_ids(project, args.message_id, _list_part_ids(args))
    agent = choose_agent(project, session, args.agent)
    model = await choose_model(project, args, session, agent)
    # A prompt for a model that can't be opened is not stored.
    project.models.open(format_model_ref(model))
    message = make_user_message(project, session.id, agent.name, model, args.message_id)
    message = replace(message, system=args.system, tools=args.tools, format=output_format)
    return session, agent, message


def _list_part_ids(args: Prompt) -> list[str]:
    return [each.id for each in args.parts if each.id is not None]


async def _prepare_and_store(project: Project, args: Prompt) -> tuple[UserMessage, list[Part]]:
    session, agent, message = await _make_message(project, args)
    part_ids = _list_part_ids(args)
    parts = await _make_parts(project, session, agent, message, await _add_context(project, args))
    if project.engine.hooks.runner is not None:
        from codeloop.app.handlers.session.prompt_hooks import run_prompt_hooks

        message, parts = await run_prompt_hooks(project, message, parts)
        part_ids = [part.id for part in parts]
    await fault_injection.pass_point_async("prompt.store")
    # Files were read and hooks have run: meanwhile an undo may have begun,
    # and an id may have been used.
    project.runs.check_free(session.id)
    check_ids(project, args.message_id, part_ids)
    _append_prompt(project, args, message, parts)
    return message, parts


def _append_prompt(
    project: Project, args: Prompt, message: UserMessage, parts: Sequence[Part]
) -> None:
    """Append a prompt to its session in one transaction, which also makes an undo final."""
    # Read again, since a running turn may have changed it.
    session = project.store.get_session(args.session_id)
    discarded: list[StoredEvent] = []
    if session.revert is not None:
        from codeloop.app.handlers.changes.final_undo import make_discard_events

        discarded = make_discard_events(project.store, session.id)
    for event in discarded:
        # The sessions of subagents whose work is undone are among the events too.
        if isinstance(event, SessionUpdated) and event.properties.info.id == session.id:
            session = event.properties.info
    model = message.model
    session = replace(
        session,
        agent=message.agent,
        model=SessionModel(id=model.model_id, provider_id=model.provider_id, variant=model.variant),
        permission=_add_tool_rules(session, args.tools),
        time=replace(session.time, updated=now_ms()),
    )
    project.store.append(
        *discarded,
        make_message_updated(message),
        *(make_part_updated(part) for part in parts),
        make_session_updated(session),
    )
    # The undo became final, so its diff is empty now.
    if discarded:
        project.store.publish_live(make_session_diff(session.id, []))


async def _add_context(project: Project, args: Prompt) -> list[PartInput]:
    """Return the parts of a prompt with those that codeloop adds: how its goal is judged,
    and notes of the memory.
    """
    part_inputs = [*args.parts]
    if args.goal is not None:
        from codeloop.agent.goal.goal_rounds import describe_goal

        part_inputs.append(TextPartInput(text=describe_goal(args.goal), synthetic=True))
    # Looked at before the import, since most projects have no memory.
    if (project.workspace.root / ".codeloop" / "memory").is_dir():
        from codeloop.app.handlers.session.prompt_notes import make_notes_part

        notes = await make_notes_part(project, args.session_id, part_inputs)
        if notes is not None:
            part_inputs.append(notes)
    return part_inputs


async def _make_parts(
    project: Project,
    session: Session,
    agent: Agent,
    message: UserMessage,
    part_inputs: Sequence[PartInput],
) -> list[Part]:
    """Return the message's parts: the prompt's, with files read,
    and notes for the model on recent changes.
    """
    switch_note = make_switch_note(_find_previous_agent(project, session), agent.name)
    allowed = part_inputs
    if any(map(is_mention, part_inputs)):
        from codeloop.app.handlers.session.resolve_mentions import resolve_mentions

        allowed = await resolve_mentions(project, agent, message, part_inputs)
    notices = project.services.notices.take(session.id)
    notes: list[PartInput] = []
    if switch_note:
        notes.append(TextPartInput(text=switch_note, synthetic=True))
    if notices:
        notes.append(TextPartInput(text=notices, synthetic=True, metadata={TOLD_KEY: True}))
    parts: list[Part] = []
    for each in (*allowed, *notes):
        # In a thread, since reading a file and scaling an image may take long.
        if isinstance(each, FilePartInput):
            parts += await asyncio.to_thread(make_parts, project.workspace, message, each)
        else:
            parts += make_parts(project.workspace, message, each)
    return parts


def _find_previous_agent(project: Project, session: Session) -> str | None:
    entries = project.store.read_context(session.id).entries
    return next(
        (entry.info.agent for entry in reversed(entries) if isinstance(entry.info, UserMessage)),
        None,
    )


def make_switch_note(before: str | None, now: str) -> str | None:
    """Return a note for the model when a prompt is for another agent than the last one;
    None for the same agent.
    """
    if before is None or before == now:
        return None
    match before, now:
        case _, "plan":
            return "From here on you plan: change nothing but plan files. What was allowed before no longer is."
        case "plan", _:
            return f"Planning is over: you are the agent {now} now and may change files. A plan, if agreed, holds."
        case _:
            return (
                f"You are the agent {now} now; what was said of the agent {before} no longer holds."
            )


def check_ids(project: Project, message_id: str | None, parts: Sequence[str]) -> None:
    """Raise OperationError for a client's ids that are invalid,
    or in use: their messages would be overwritten.
    """
    ids: list[tuple[str, Prefix, str]] = [("parts.id", "prt", each) for each in parts]
    if message_id is not None:
        ids.append(("messageID", "msg", message_id))
    for field, prefix, value in ids:
        if not is_id(value, prefix):
            raise OperationError(
                "BadRequest", f"{field} must begin with {prefix}: {value[: CHOSEN_ID.value]}"
            )
        if len(value) > CHOSEN_ID.value or not re.fullmatch(_ID_CHARACTERS, value):
            raise OperationError(
                "BadRequest",
                f"{field} must be {prefix}_ and letters or digits, {CHOSEN_ID.value} characters at most.",
            )
    queries = project.store.queries
    if (
        len(set(parts)) < len(parts)
        or (message_id is not None and queries.has_any_id((), [message_id]))
        or queries.has_any_part(parts)
    ):
        raise OperationError(
            "BadRequest",
            "messageID, or the id of a part, is in use. Choose another, or leave it out.",
        )


async def _check_format(project: Project, args: Prompt) -> JSON | None:
    """Return the output format of a prompt as it is stored.
    Raises OperationError if it is invalid.
    """
    if args.format is None or args.format == {"type": "text"}:
        return args.format
    from codeloop.agent.structured.answer_format import check_format

    return await check_format(args.format, project.workspace.environment)


def _add_tool_rules(session: Session, tools: dict[str, bool] | None) -> list[PermissionRule] | None:
    """Return the rules of a session with those for a prompt's `tools`,
    which allow or deny whole tools.
    """
    if not tools:
        return session.permission
    # Imported late: few prompts have rules.
    from codeloop.config.forms.claude_rules import convert_pattern, split_rule

    rules = [
        PermissionRule(
            permission=split_rule(name)[0],
            pattern=convert_pattern(split_rule(name)[1]) or "*",
            action="allow" if is_allowed else "deny",
        )
        for name, is_allowed in tools.items()
    ]
    return [*(session.permission or ()), *rules]
