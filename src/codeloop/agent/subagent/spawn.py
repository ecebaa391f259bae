"""Starts subagents: another agent answers a call of the tool `task`, in a session of its own."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from codeloop.agent.answer.live_status import show_status
from codeloop.agent.calls.call_rules import Ceiling, set_ceilings
from codeloop.agent.engine import Engine, TurnSettings
from codeloop.agent.loop import run
from codeloop.agent.moves import Stop
from codeloop.agent.subagent.supervisor import wait_until_overdue
from codeloop.schema.api.agents import Agent
from codeloop.schema.bounds.session import TREE_SUBAGENTS
from codeloop.schema.errors import CodeloopError
from codeloop.schema.event import make_message_updated, make_part_updated, make_session_created
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import SUBAGENT_STEPS
from codeloop.schema.live_events import Idle, SessionIdle, SessionRef
from codeloop.schema.message import (
    NO_TOKENS,
    ModelRef,
    Session,
    SessionModel,
    SessionTime,
    UserMessage,
    UserTime,
    count_used_tokens,
    format_model_ref,
    parse_model_ref,
)
from codeloop.schema.part import Part, TextPart, ToolPart
from codeloop.schema.permission import PermissionRule
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import choose_creation_time
from codeloop.store.lease import wait_for_stop
from codeloop.store.subagents import make_subagent_report, store_subagent_state
from codeloop.tool.tool import Subtask, SubtaskResult, ToolFailure

_NO_NESTING_RULE = PermissionRule(permission="task", pattern="*", action="deny")


async def run_subagent(
    engine: Engine, call: ToolPart, task: Subtask, report: Callable[[JSON], None]
) -> SubtaskResult:
    """Run an agent on a task in a child session until it stops; its cost is added to the parent's.

    A task in the background is only started; the result then says so.

    Its messages stay in its session, whatever happens to the call that waits for it.
    Raises ToolFailure when there is no such agent or session, or when the child ends with an error.
    """
    agent = engine.get_subagent(task.agent)
    parent = engine.store.get_session(call.session_id)
    child = _find_or_make_child(engine, parent, agent, task, _make_ceilings(engine, call))
    if engine.supervisor.find_task(child.id) is not None or child.id in engine.store.statuses:
        raise ToolFailure(
            f"The subagent {child.id} is still working.",
            advice="Wait for it, or ask with bash_output.",
        )
    engine.store.leases.acquire(child.id)
    await _store_prompt(engine, child, agent, task)
    model = (
        {"providerID": child.model.provider_id, "modelID": child.model.id} if child.model else {}
    )
    metadata = {"parentSessionId": parent.id, "sessionId": child.id, "model": model}
    report(metadata)
    store_subagent_state(engine.store, child.id, "queued", background=task.background)
    working = engine.supervisor.begin(
        child.id, _run_child(engine, parent, child, metadata, background=task.background)
    )
    if not task.background:
        return await _wait_for(working)
    engine.supervisor.background_parents.add(parent.id)
    return SubtaskResult(
        child.id, f"Started. bash_output asks about {child.id}.", metadata, "running"
    )


async def _wait_for(working: asyncio.Task[SubtaskResult]) -> SubtaskResult:
    """Wait for a child; it ends with the call that waits for it."""
    try:
        return await working
    except asyncio.CancelledError:
        # The user may have aborted the child and not its parent,
        # whose turn then goes on with a failed call.
        if working.cancelled():
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                raise ToolFailure("The subagent was cancelled by the user.") from None
        raise
    finally:
        working.cancel()


async def _run_child(
    engine: Engine, parent: Session, child: Session, metadata: JSON, *, background: bool
) -> SubtaskResult:
    """Wait for a free slot, run the child, and keep its state stored."""
    # The lease tells other processes that the child is at work; it has to be renewed.
    renewing = asyncio.create_task(engine.store.leases.keep_renewing(child.id))
    note_state = partial(store_subagent_state, engine.store, child.id, background=background)
    try:
        async with engine.supervisor.slots:
            note_state("running")
            stop = await _run_with_limits(
                replace(engine, turn_settings=_make_turn_settings(engine, parent, child)), child.id
            )
    except asyncio.CancelledError:
        note_state("cancelled", reason="It was aborted.")
        raise
    except CodeloopError as error:
        note_state("failed", reason=str(error))
        raise
    finally:
        renewing.cancel()
        with suppress(CodeloopError):
            engine.store.leases.release(child.id)
        show_status(engine, child.id, Idle())
        engine.store.publish_live(SessionIdle(properties=SessionRef(session_id=child.id)))
    text = make_subagent_report(engine.store, child.id)
    if stop.reason != "done":
        reason = stop.message or stop.reason
        note_state("failed", reason=reason)
        raise ToolFailure(
            f"The subagent stopped: {reason}",
            advice=f"To continue, give task_id {child.id}. Its last answer: {text or 'nothing'}",
        )
    note_state("done")
    return SubtaskResult(child.id, text, metadata)


def _make_turn_settings(engine: Engine, parent: Session, child: Session) -> TurnSettings:
    """Return the settings of a child: its agent's steps,
    and what is left of its parent's dollars and tokens.
    """
    settings = engine.turn_settings
    # Read again: the subagent may have waited for a slot, while others used up cost and tokens.
    parent, child = engine.store.get_session(parent.id), engine.store.get_session(child.id)
    cost, tokens = settings.max_cost, settings.max_tokens
    if cost is not None:
        cost = max(cost - ((parent.cost or 0.0) - settings.cost_before), 0.0)
    if tokens is not None:
        tokens = max(tokens - (count_used_tokens(parent) - settings.tokens_before), 0)
    steps = engine.get_agent(child.agent or "general").steps or SUBAGENT_STEPS.value
    return replace(
        settings,
        max_steps=steps,
        max_cost=cost,
        cost_before=child.cost or 0.0,
        max_tokens=tokens,
        tokens_before=count_used_tokens(child),
    )


async def _run_with_limits(engine: Engine, session_id: str) -> Stop:
    """Run a child until it stops, exceeds its time limit, shows no progress,
    or everything is to stop.
    """
    running = asyncio.create_task(
        engine.hooks.run_turn(partial(run, engine, session_id), engine.store, session_id)
    )
    watching = asyncio.create_task(wait_until_overdue(engine.store, session_id))
    stopping = asyncio.create_task(wait_for_stop(engine.stop_file))
    try:
        await asyncio.wait([running, watching, stopping], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        return (
            Stop("limit", watching.result())
            if watching.done()
            else Stop("aborted", "Everything was stopped.")
        )
    finally:
        for task in (watching, stopping, running):
            task.cancel()
        await asyncio.wait([running, watching, stopping])


def _make_ceilings(engine: Engine, call: ToolPart) -> tuple[Ceiling, ...]:
    """Return the ceilings to store with a call's subagent: the agent that makes the call;
    empty: that is not known.
    """
    # The agent of the message, since the user may have switched the session's
    # agent during the turn.
    agent = engine.store.read_context(call.session_id).find_agent(call.message_id)
    return (Ceiling(agent=agent),) if agent else ()


def _find_or_make_child(
    engine: Engine, parent: Session, agent: Agent, task: Subtask, ceilings: tuple[Ceiling, ...]
) -> Session:
    if task.session_id is not None:
        session = engine.store.find_session(task.session_id)
        if session is None or session.parent_id != parent.id:
            raise ToolFailure(
                f"There is no subagent session {task.session_id} of this session.",
                advice="Leave task_id out to start a new one.",
            )
        metadata = set_ceilings(session.metadata, ceilings)
        return engine.store.update_session(
            session.id, lambda current: replace(current, metadata=metadata)
        )
    _check_subagent_count(engine, parent)
    ref = _find_own_model(engine, agent, task)
    model = (
        SessionModel(id=ref.model_id, provider_id=ref.provider_id, variant=ref.variant)
        if ref
        else parent.model
    )
    now = now_ms()
    child = Session(
        id=new_id("ses"),
        slug=parent.slug,
        project_id=parent.project_id,
        directory=parent.directory,
        path=parent.path,
        parent_id=parent.id,
        title=f"{task.description} (@{agent.name} subagent)",
        version=parent.version,
        agent=agent.name,
        model=model,
        cost=0.0,
        tokens=NO_TOKENS,
        permission=[_NO_NESTING_RULE, *task.permission],
        metadata=set_ceilings(None, ceilings),
        time=SessionTime(created=now, updated=now),
    )
    engine.store.append(make_session_created(child))
    return child


def _check_subagent_count(engine: Engine, parent: Session) -> None:
    """Raise ToolFailure beyond the total of subagents of a session tree; counted from the store."""
    *_, root = engine.store.walk_ancestors(parent.id)
    max_count = TREE_SUBAGENTS.value if engine.subagents.most is None else engine.subagents.most
    count, waiting = 0, [root.id]
    while waiting:
        children = engine.store.list_sessions(parent=waiting.pop())
        count += len(children)
        waiting += [session.id for session in children]
    if count >= max_count:
        raise ToolFailure(
            f"The limit of {max_count} subagents of a session is reached (`subagents.most` of the configuration).",
            advice="Do the rest yourself, or continue an earlier subagent by its task_id.",
        )


def _find_own_model(engine: Engine, agent: Agent, task: Subtask) -> ModelRef | None:
    """Return a subagent's own model (not its parent's): the task's,
    else the agent's with its variant.

    If neither has one, it is `subagents.model`; None: that is not set either.
    """
    if task.model is None and agent.model is None and engine.subagents.model is not None:
        return parse_model_ref(engine.subagents.model)
    if task.model is not None or agent.model is None or agent.variant is None:
        return task.model or agent.model
    try:
        return replace(
            agent.model,
            variant=engine.models.resolve_variant(format_model_ref(agent.model), agent.variant),
        )
    except CodeloopError as error:
        raise ToolFailure(str(error)) from error


async def _store_prompt(engine: Engine, child: Session, agent: Agent, task: Subtask) -> None:
    if child.model is None:
        raise ToolFailure("The session has no model for a subagent.")
    model = ModelRef(
        provider_id=child.model.provider_id, model_id=child.model.id, variant=child.model.variant
    )
    created_at = choose_creation_time(engine.store.read_context(child.id), now_ms())
    message = UserMessage(
        id=new_id("msg"),
        session_id=child.id,
        time=UserTime(created=created_at),
        agent=agent.name,
        model=model,
        format=task.format,
    )
    parts: list[Part] = [
        TextPart(id=new_id("prt"), session_id=child.id, message_id=message.id, text=task.prompt)
    ]
    message, parts = await engine.hooks.change_prompt(message, parts, child.parent_id)
    engine.store.append(make_message_updated(message), *map(make_part_updated, parts))
