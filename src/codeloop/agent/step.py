"""One step: sends a request to the model, stores the parts of the answer, and runs its tool calls as they come."""

from collections.abc import Callable
from contextlib import aclosing

import msgspec

from codeloop.agent.answer.answer_draft import Draft
from codeloop.agent.answer.answer_lifecycle import AbortGuard, make_finish_part, new_message, store_finish
from codeloop.agent.answer.live_status import RetryStatus, show_status
from codeloop.agent.answer.usage import Usage
from codeloop.agent.engine import Engine, model_ref
from codeloop.agent.moves import AskModel, Delegate, list_fallbacks
from codeloop.agent.request.projection import describe_changed_files
from codeloop.agent.request.request_cache import RequestCache
from codeloop.agent.tool_calls import ToolCalls
from codeloop.kit import fault_injection
from codeloop.model.chat import (
    CallDelta,
    CallReady,
    CallStarted,
    ChatModel,
    Finished,
    ModelRequest,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    UsageUpdate,
)
from codeloop.permission.defaults import UNATTENDED_RULES
from codeloop.schema.agent import Agent
from codeloop.schema.event import StoredEvent, make_message_updated, make_part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import MODEL_FALLBACK_ATTEMPTS
from codeloop.schema.live_events import Busy, Toast, ToastShown
from codeloop.schema.message import AssistantMessage, UserMessage
from codeloop.schema.part import PatchPart, StepStartPart, ToolPart
from codeloop.schema.wire import JSON, replace
from codeloop.tool.tool import Subtask, SubtaskResult
from codeloop.workspace.snapshot.step_recorder import StepRecorder


async def ask_model(engine: Engine, session_id: str, move: AskModel, cache: RequestCache) -> None:
    """Send one request and process the answer: store its parts, run its calls, count its cost.

    Failures of the service and of tools are stored, not raised. A cancelled step is stored as interrupted.
    """
    agent = engine.get_agent(move.user.agent)
    model = engine.models.open(model_ref(move.user.model))
    info = new_message(engine, session_id, move.user)
    request = await _prepare_request(engine, info, move.user, agent, model, cache)
    structured = None
    if move.required_format is not None:
        # Imported late: few prompts ask for a format.
        from codeloop.agent.structured.structured_step import StructuredStep

        structured = StructuredStep(engine, info, move.required_format, cache)
        model, request = structured.prepare(model, request)
    show_status(engine, session_id, Busy())
    request = await _store_start(engine, info, request)
    draft = Draft(engine.store, session_id, info.id)
    recorder = StepRecorder(engine.snapshots) if engine.snapshots is not None else None
    calls = ToolCalls(engine, agent, info, recorder, structured.toolbox if structured else None)
    usage = Usage(model.info.prices, request, engine.policy.budget)
    is_complete = False
    with AbortGuard(engine, info, usage):
        try:
            await fault_injection.reach("step.start")
            finished = await _stream(engine, model, request, draft, calls, usage)
            await engine.hooks.complete_texts(engine, info)
            # Calls may take long, and the process may end meanwhile, so the cost of the request is stored now.
            if calls.has_tool_calls:
                usage.store_events(engine.store, session_id, make_message_updated(usage.add_to(info)))
            await calls.join(finished)
            is_complete = True
        finally:
            await calls.cancel()
            draft.close()
            snapshot = await _store_changes(engine, usage.add_to(info), recorder, is_complete=is_complete)
        await fault_injection.reach("step.finish")
        has_called, more = calls.has_tool_calls, list[StoredEvent]()
        if structured is not None:
            info, finished, has_called, more = await structured.finish(info, finished, has_called=has_called)
        store_finish(engine, info, finished, usage, snapshot, has_called=has_called, more=more)


async def delegate(engine: Engine, session_id: str, move: Delegate) -> None:
    """Run the tool `task` for each subtask of a prompt, all at once. Then the model is asked, with the results.

    If it is cancelled, the calls so far are stored as interrupted.
    """
    first = move.subtasks[0].agent
    info = replace(new_message(engine, session_id, move.user), mode=first, agent=first)
    show_status(engine, session_id, Busy())
    engine.store.append(make_message_updated(info))
    models = {new_id("tool"): subtask.model for subtask in move.subtasks}
    spawn_subagent = engine.spawn

    async def spawn(engine: Engine, call: ToolPart, task: Subtask, report: Callable[[JSON], None]) -> SubtaskResult:
        """Start a subagent with the model that its subtask names: the tool `task` has no parameter for it."""
        return await spawn_subagent(engine, call, replace(task, model=models.get(call.call_id)), report)

    engine = replace(engine, spawn=spawn)
    # No recorder: each subagent records the changes of its own steps.
    calls = ToolCalls(engine, engine.get_agent(move.user.agent), info)
    with AbortGuard(engine, info):
        try:
            for call_id, subtask in zip(models, move.subtasks, strict=True):
                payload = {
                    "description": subtask.description,
                    "prompt": subtask.prompt,
                    "subagent_type": subtask.agent,
                }
                calls.start(CallReady(call_id, "task", msgspec.json.encode(payload).decode()))
            await calls.join(Finished("tool-calls"))
        finally:
            await calls.cancel()
        completed = replace(info.time, completed=now_ms())
        engine.store.append(make_message_updated(replace(info, finish="tool-calls", time=completed)))


async def _prepare_request(
    engine: Engine, info: AssistantMessage, user: UserMessage, agent: Agent, model: ChatModel, cache: RequestCache
) -> ModelRequest:
    """Build the request of a step, with the additions of the prompt `user` and of the extensions."""
    view = engine.store.read_context(info.session_id)
    if parts := cache.select_outputs_to_drop(view, model.info, info.time.created):
        engine.store.append(*map(make_part_updated, parts))
    request = _make_request(engine, info, agent, model, cache)
    if user.system:
        request = replace(request, system=f"{request.system}\n\n{user.system}")
    return await engine.hooks.change_request(engine, user, model.info, request)


def _make_request(
    engine: Engine, info: AssistantMessage, agent: Agent, model: ChatModel, cache: RequestCache
) -> ModelRequest:
    """Build the request of the step `info`: system prompt, tools, the whole conversation."""
    session_id = info.session_id
    view = engine.store.read_context(session_id)
    rulesets, *ceilings = engine.list_rulesets(session_id, agent)
    if not engine.policy.attended:
        ceilings.append((UNATTENDED_RULES,))
    options = {**model.info.options, **agent.options}
    if info.variant is not None:
        from codeloop.model.catalog.variants import apply_variant

        options = apply_variant(options, model.info, info.variant)
    return ModelRequest(
        system=cache.get_system_prompt(engine, view.session, agent, model.info),
        messages=cache.get_messages(view, model.info, info.time.created),
        tools=cache.get_tools(engine.toolbox, model.info, rulesets, tuple(ceilings)),
        session_id=session_id,
        temperature=agent.temperature,
        top_p=agent.top_p,
        options=options,
        wants_hour_cache=engine.policy.keep_hour,
        max_attempts=MODEL_FALLBACK_ATTEMPTS.value if list_fallbacks(model.info.ref, engine.policy) else None,
    )


async def _store_start(engine: Engine, info: AssistantMessage, request: ModelRequest) -> ModelRequest:
    """Store the empty answer, with the files that others changed meanwhile; return the request that names them."""
    start = StepStartPart(id=new_id("prt"), session_id=info.session_id, message_id=info.id)
    changed_files = None
    if not engine.workspace.read_log.is_empty:
        from codeloop.agent.request.changed_files import find_changed_files

        changed_files = await find_changed_files(engine, info)
    if changed_files is None:
        engine.store.append(make_message_updated(info), make_part_updated(start))
        return request
    engine.store.append(make_message_updated(info), make_part_updated(start), make_part_updated(changed_files))
    return replace(request, messages=(*request.messages, *describe_changed_files(changed_files)))


async def _stream(
    engine: Engine, model: ChatModel, request: ModelRequest, draft: Draft, calls: ToolCalls, usage: Usage
) -> Finished:
    """Add the model's events to the draft, start calls as they become complete, and count the usage."""
    retry_status = RetryStatus(engine, request.session_id)
    calls.offered_tools = frozenset(spec.name for spec in request.tools)
    try:
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                retry_status.end()
                usage.count_event(event)
                match event:
                    case TextDelta(text=text, block=block, metadata=metadata):
                        draft.add_text(text, block, metadata)
                    case ReasoningDelta(text=text, block=block, metadata=metadata):
                        draft.add_reasoning(text, block, metadata)
                    case CallStarted(id=call_id, name=name):
                        draft.close()
                        # The part belongs to this attempt: a retry removes it like the text.
                        draft.adopt_part(calls.open_call(call_id, name))
                    case CallDelta() | UsageUpdate():
                        pass
                    case CallReady():
                        await fault_injection.reach("step.call_ready")
                        calls.start(event)
                    case RetryScheduled():
                        draft.restart()
                        calls.drop_incomplete()
                        retry_status.begin(event)
                    case Finished():
                        draft.close()
                        # Some models write their calls as text, and the service then reports a plain end.
                        if event.reason == "stop" and not calls.has_tool_calls:
                            calls.start_text_tool_calls()
                        return event
        # The service closed the stream without a reason; the answer counts as complete.
        draft.close()
        usage.count_event(Finished("stop"))
        return Finished("stop")
    finally:
        retry_status.close()


async def _store_changes(
    engine: Engine, info: AssistantMessage, recorder: StepRecorder | None, *, is_complete: bool
) -> str | None:
    """Store the files that a step has changed, however it ended; return the snapshot of the work tree after it."""
    changes = await recorder.finish() if recorder is not None else None
    for note in recorder.notes if recorder is not None else ():
        engine.store.publish_live(ToastShown(properties=Toast(message=note, variant="warning")))
    if changes is None:
        return None
    if changes.files:
        files = list(changes.files)
        patch = PatchPart(
            id=new_id("prt"), session_id=info.session_id, message_id=info.id, hash=changes.before, files=files
        )
        finish = [] if is_complete else [make_part_updated(make_finish_part(info, "error", changes.after))]
        engine.store.append(make_part_updated(patch), *finish)
    return changes.after
