"""Handlers of prompts: store the message, and start or wake the session's turn."""

import asyncio
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from msgspec import structs

from codeloop.agent.engine import model_ref
from codeloop.agent.moves import Stop, next_move
from codeloop.app.handlers import handles
from codeloop.app.handlers.session.turn_policy import make_policy
from codeloop.app.project import Project
from codeloop.app.prompt_parts import is_mention, make_parts
from codeloop.extend.agents import parse_ref
from codeloop.kit import fault_injection
from codeloop.kit.jsonc import KeyPath
from codeloop.model.errors import UnknownModel
from codeloop.schema import operation
from codeloop.schema.agent import Agent
from codeloop.schema.api.goal import Goal
from codeloop.schema.api.session_inputs import (
    FilePartInput,
    InvokeCommand,
    MessageWithParts,
    PartInput,
    Prompt,
    RunShell,
    Summarize,
    TextPartInput,
    TurnEnd,
)
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.event import (
    SessionUpdated,
    StoredEvent,
    make_message_updated,
    make_part_updated,
    make_session_updated,
)
from codeloop.schema.ids import Prefix, is_id, new_id, now_ms
from codeloop.schema.limits import CHOSEN_ID
from codeloop.schema.live_events import make_session_diff
from codeloop.schema.message import AssistantMessage, Message, ModelRef, Session, SessionModel, UserMessage, UserTime
from codeloop.schema.part import TOLD_KEY, CompactionPart, Part, TextPart
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import Entry, choose_creation_time

CUT_OFF = "The server ended while it worked on this. What was done is kept; say how to go on."
_ID_CHARACTERS = re.compile(r"[A-Za-z0-9_-]+")


async def wait_for_extensions(project: Project) -> None:
    """Wait until the project's extensions have started and reported their tools and hooks."""
    if (hosts := project.services.extensions.hosts) is not None:
        await hosts.ready()
    project.show_warnings()


@handles(operation.PROMPT)
async def prompt(project: Project, args: Prompt) -> MessageWithParts:
    """Store a prompt, run the turn and return its last answer. The turn goes on when the caller goes away.

    A prompt that was stored before, by the same id and with the same text, is the same one, sent again by a client
    that lost its connection: it is not stored twice and gets the answer of the first.
    """
    if args.goal is not None and not args.no_reply:
        return await _work_for_goal(project, args, args.goal)
    try:
        message, parts = await _store_or_abort(project, args)
    except OperationError:
        if (before := find_sent_prompt(project, args)) is None:
            raise
        return await wait_for_answer(project, before, args)
    if args.no_reply:
        return MessageWithParts(info=message, parts=parts)
    stop = await asyncio.shield(project.runs.wake(args.session_id, await make_policy(args.limits, message, project)))
    return _make_answer(project, args.session_id, stop)


@handles(operation.PROMPT_ASYNC)
async def prompt_async(project: Project, args: Prompt) -> None:
    """Store a prompt and start the turn, without waiting for it. A prompt that is sent again is ignored."""
    rounds = None
    if args.goal is not None:
        from codeloop.app.handlers.session.goal import begin_goal

        rounds = begin_goal(project, args, args.goal, is_sent=find_sent_prompt(project, args) is not None)
    try:
        message, _ = await _store_or_abort(project, args)
    except OperationError:
        if find_sent_prompt(project, args) is None:
            raise
        return
    if not args.no_reply:
        project.runs.wake(args.session_id, await make_policy(args.limits, message, project), rounds=rounds)


async def _work_for_goal(project: Project, args: Prompt, goal: Goal) -> MessageWithParts:
    """Carry out a prompt with a goal: its turn goes on until the goal or a limit is reached."""
    from codeloop.app.handlers.session.goal import add_goal, begin_goal

    sent_prompt = find_sent_prompt(project, args)
    rounds = begin_goal(project, args, goal, is_sent=sent_prompt is not None)
    if sent_prompt is not None:
        return add_goal(await wait_for_answer(project, sent_prompt, args), rounds)
    message, _ = await _store_or_abort(project, args)
    policy = await make_policy(args.limits, message, project)
    stop = await asyncio.shield(project.runs.wake(args.session_id, policy, rounds=rounds))
    return add_goal(_make_answer(project, args.session_id, stop), rounds)


def find_sent_prompt(project: Project, args: Prompt | InvokeCommand) -> Entry | None:
    """Return the stored message of a prompt that is sent again; None: the prompt is new, or its id is another's."""
    entries = project.store.read_context(args.session_id).entries if args.message_id is not None else ()
    entry = next((each for each in entries if each.info.id == args.message_id), None)
    if entry is None or not isinstance(entry.info, UserMessage):
        return None
    if isinstance(args, Prompt):
        texts = [part.text for part in args.parts if isinstance(part, TextPartInput) and not part.synthetic]
        stored_texts = [part.text for part in entry.parts if isinstance(part, TextPart) and not part.synthetic]
        hooks = project.engine.hooks.runner  # an extension may have changed the stored texts
        return entry if texts == stored_texts or (hooks is not None and hooks.has_handler("chat.message")) else None
    return entry


async def wait_for_answer(project: Project, before: Entry, args: Prompt | InvokeCommand) -> MessageWithParts:
    """Return the answer to a prompt that was stored before; wait for its turn if that still runs.

    A turn that was cut off by the end of its process is not started again.
    """
    message = before.info
    if not isinstance(message, UserMessage) or (isinstance(args, Prompt) and args.no_reply):
        return MessageWithParts(info=message, parts=list(before.parts))
    policy = await make_policy(args.limits, message, project)
    view = project.store.read_context(args.session_id)
    is_answered = any(getattr(each.info, "parent_id", None) == message.id for each in view.entries)
    if project.runs.works_on(args.session_id) or not is_answered:
        stop = await asyncio.shield(project.runs.wake(args.session_id, policy))
    elif not isinstance(stop := next_move(view, policy), Stop):
        stop = Stop("error", CUT_OFF)
    return _make_answer(project, args.session_id, stop)


@handles(operation.SUMMARIZE)
async def summarize(project: Project, args: Summarize) -> bool:
    """Replace the conversation in later requests by a summary; return True when that is stored."""
    session = project.store.get_session(args.session_id)
    project.store.leases.check_free(session.id)
    project.runs.check_free(session.id)
    model = ModelRef(provider_id=args.provider_id, model_id=args.model_id)
    project.models.open(model_ref(model))
    message = make_user_message(project, session.id, session.agent or "build", model)
    part = CompactionPart(id=new_id("prt"), session_id=session.id, message_id=message.id, auto=args.auto)
    project.store.append(make_message_updated(message), make_part_updated(part))
    stop = await asyncio.shield(project.runs.wake(session.id, await make_policy(None, message, project)))
    if stop.reason != "done":
        kind = "UnknownError" if stop.reason == "error" else "BadRequest"
        raise OperationError(kind, f"The conversation was not summarised: {stop.message or stop.reason}")
    return True


@handles(operation.ABORT)
async def abort(project: Project, args: SessionId) -> bool:
    """Stop the session's turn, in whatever process it runs; return whether no turn runs any more."""
    return await project.runs.abort_anywhere(args.session_id)


def choose_agent(project: Project, session: Session, name: str | None) -> Agent:
    """Return the agent to use: the named one, else the session's, else the default one. Raises OperationError."""
    return project.engine.get_agent(name or session.agent or project.settings.config.default_agent or "build")


def make_user_message(
    project: Project, session_id: str, agent: str, model: ModelRef, message_id: str | None = None
) -> UserMessage:
    """Return a user message whose time is later than that of all messages of the session."""
    created = choose_creation_time(project.store.read_context(session_id), now_ms())
    return UserMessage(
        id=message_id or new_id("msg"),
        session_id=session_id,
        time=UserTime(created=created),
        agent=agent,
        model=model,
    )


async def _store_or_abort(project: Project, args: Prompt) -> tuple[UserMessage, list[Part]]:
    """Store a prompt; an abort also ends the preparation, such as reading a large file."""
    return await project.runs.before_turn(args.session_id, asyncio.create_task(_store(project, args)))


async def _store(project: Project, args: Prompt) -> tuple[UserMessage, list[Part]]:
    await wait_for_extensions(project)
    session = project.store.get_session(args.session_id)
    project.store.leases.check_free(session.id)
    data = await _check_format(project, args)
    part_ids = [part_input.id for part_input in args.parts if part_input.id is not None]
    check_ids(project, args.message_id, part_ids)
    agent = choose_agent(project, session, args.agent)
    model = await choose_model(project, args, session, agent)
    project.models.open(model_ref(model))
    message = make_user_message(project, session.id, agent.name, model, args.message_id)
    message = replace(message, system=args.system, tools=args.tools, format=data)
    part_inputs = args.parts
    if args.goal is not None:
        from codeloop.app.handlers.session.goal import make_goal_part

        part_inputs = [*part_inputs, make_goal_part(args.goal)]
    if (project.workspace.root / ".codeloop" / "memory").is_dir():
        from codeloop.app.handlers.project.memory import find_notes

        notes = await find_notes(project, session.id, part_inputs)
        part_inputs = [*part_inputs, notes] if notes is not None else part_inputs
    parts = await _make_parts(project, session, agent, message, part_inputs)
    if project.engine.hooks.runner is not None:
        from codeloop.app.handlers.session.hooked_prompt import run_prompt_hooks

        message, parts = await run_prompt_hooks(project, message, parts)
        part_ids = [part.id for part in parts]
    await fault_injection.reach("prompt.store")
    project.runs.check_free(session.id)
    check_ids(project, args.message_id, part_ids)  # again, since an id may have been taken while files were read
    session = project.store.get_session(session.id)  # a running turn may have changed it meanwhile
    discarded: list[StoredEvent] = []
    if session.revert is not None:
        from codeloop.app.handlers.session.revert import discard_reverted

        discarded = discard_reverted(project.store, session.id)
    for event in discarded:
        if isinstance(event, SessionUpdated):
            session = event.properties.info
    session = replace(
        session,
        agent=agent.name,
        model=SessionModel(id=model.model_id, provider_id=model.provider_id, variant=model.variant),
        permission=_add_tool_rules(session, args.tools),
        time=replace(session.time, updated=now_ms()),
    )
    new_parts = (make_part_updated(part) for part in parts)
    project.store.append(*discarded, make_message_updated(message), *new_parts, make_session_updated(session))
    if discarded:  # the undo became final, so its diff is empty now
        project.store.publish_live(make_session_diff(session.id, []))
    return message, parts


async def _make_parts(
    project: Project, session: Session, agent: Agent, message: UserMessage, part_inputs: Sequence[PartInput]
) -> list[Part]:
    """Return the parts of a prompt with its files read, and with notes on changes since the last prompt."""
    switched = make_switch_note(_find_previous_agent(project, session), agent.name)
    allowed = part_inputs
    if any(map(is_mention, part_inputs)):
        from codeloop.app.check_mentions import check_mentions

        allowed = await check_mentions(project, agent, message, part_inputs)
    changed = project.services.notices.take(session.id)
    metadata_of = {switched: None, changed: {TOLD_KEY: True}}
    notes = (
        TextPartInput(text=note, synthetic=True, metadata=metadata) for note, metadata in metadata_of.items() if note
    )
    parts: list[Part] = []
    for each in (*allowed, *notes):
        if isinstance(each, FilePartInput):  # in a thread, since reading and scaling an image is slow
            parts += await asyncio.to_thread(make_parts, project.workspace, message, each)
        else:
            parts += make_parts(project.workspace, message, each)
    return parts


def _find_previous_agent(project: Project, session: Session) -> str | None:
    entries = project.store.read_context(session.id).entries
    return next((entry.info.agent for entry in reversed(entries) if isinstance(entry.info, UserMessage)), None)


def make_switch_note(before: str | None, now: str) -> str | None:
    """Return a note for the model when a prompt is for another agent than the last one; None for the same agent."""
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
    """Raise OperationError for ids chosen by a client that are malformed or in use.

    A message that has such an id already would be overwritten.
    """
    ids: list[tuple[str, Prefix, str]] = [("parts.id", "prt", each) for each in parts]
    if message_id is not None:
        ids.append(("messageID", "msg", message_id))
    for field, prefix, value in ids:
        if not is_id(value, prefix):
            raise OperationError("BadRequest", f"{field} must begin with {prefix}: {value[: CHOSEN_ID.value]}")
        if len(value) > CHOSEN_ID.value or not _ID_CHARACTERS.fullmatch(value):
            raise OperationError(
                "BadRequest", f"{field} must be {prefix}_ and letters or digits, {CHOSEN_ID.value} characters at most."
            )
    messages = [message_id] if message_id is not None else []
    if (messages or parts) and (len(set(parts)) < len(parts) or project.store.queries.has_any_id((), messages, parts)):
        raise OperationError(
            "BadRequest", "messageID, or the id of a part, is in use. Choose another, or leave it out."
        )


async def _check_format(project: Project, args: Prompt) -> JSON | None:
    """Return the output format of a prompt in the form that is stored. Raises OperationError when it is invalid."""
    if args.format is None or args.format == {"type": "text"}:
        return args.format
    from codeloop.agent.structured.answer_format import check_format

    return await check_format(args.format, project.workspace.environment)


async def choose_model(project: Project, args: Prompt | RunShell, session: Session, agent: Agent) -> ModelRef:
    """Return the model to use: the prompt's, else that of the agent which it names, the session's, or the default.

    The variant is the prompt's, else the one stored with the session's model, else the one of the agent's model.
    Raises CodeloopError when there is no model, UnknownModel when the model or the variant does not exist.
    """
    model = await _choose_named_model(project, args, session, agent)
    variant = (args.variant if isinstance(args, Prompt) else None) or model.variant
    is_agents = agent.model is not None and model_ref(agent.model) == model_ref(model)
    name = variant or (agent.variant if is_agents else None)
    if name is None:
        return model
    with _naming_setting(project, () if variant else ("agent", agent.name, "variant")):
        return replace(model, variant=project.models.variant(model_ref(model), name))


async def _choose_named_model(project: Project, args: Prompt | RunShell, session: Session, agent: Agent) -> ModelRef:
    if args.model is not None:
        check_model(project, args.model)
        return args.model
    if session.model is not None and (args.agent is None or agent.model is None):
        return ModelRef(provider_id=session.model.provider_id, model_id=session.model.id, variant=session.model.variant)
    if agent.model is not None:
        check_model(project, agent.model, ("agent", agent.name, "model"))
        return agent.model
    with _naming_setting(project, ("model",)):
        return parse_ref(await project.models.default(project.settings.config.model))


def check_model(project: Project, model: ModelRef, keys: KeyPath = ()) -> None:
    """Raise UnknownModel for a model that does not exist; the error names similar ones.

    `keys`: the path of the setting that names the model, if one does.
    """
    with _naming_setting(project, keys):
        project.models.check(model_ref(model))


@contextmanager
def _naming_setting(project: Project, keys: KeyPath) -> Generator[None]:
    """Add the file and line of the setting to the error of an unknown model."""
    try:
        yield
    except UnknownModel as error:
        origin = project.settings.loaded.describe_origin(keys)
        if origin is None:
            raise
        raise UnknownModel(f"{error}\nIt is chosen by {origin[0]}.") from error


def _add_tool_rules(session: Session, tools: dict[str, bool] | None) -> list[PermissionRule] | None:
    if not tools:
        return session.permission
    rules = [
        PermissionRule(permission=name, pattern="*", action="allow" if allowed else "deny")
        for name, allowed in tools.items()
    ]
    return [*(session.permission or ()), *rules]


def _make_answer(project: Project, session_id: str, stop: Stop) -> MessageWithParts:
    entries = project.store.read_context(session_id).entries
    if not entries:
        raise OperationError("NotFoundError", "The prompt was cancelled before anything answered it.")
    last = next((entry for entry in reversed(entries) if isinstance(entry.info, AssistantMessage)), entries[-1])
    end = TurnEnd(**structs.asdict(stop), context_window=_find_window(project, last.info))
    return MessageWithParts(info=last.info, parts=list(last.parts), stop=end)


def _find_window(project: Project, info: Message) -> int:
    """Return the context window of an answer's model, in tokens; 0 when it is not known."""
    if not isinstance(info, AssistantMessage):
        return 0
    with suppress(CodeloopError):
        limits = project.models.open(f"{info.provider_id}/{info.model_id}").info.limits
        return limits.context or limits.input or 0
    return 0
