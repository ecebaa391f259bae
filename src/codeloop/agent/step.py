"""One step: sends a request to the model, stores the parts of the answer,
and runs its tool calls as they come.
"""

from contextlib import aclosing
from typing import TYPE_CHECKING

from codeloop.agent.answer.answer_lifecycle import (
    AnswerDraft,
    InterruptionGuard,
    make_answer,
    store_finish,
)
from codeloop.agent.answer.live_status import RetryStatus, show_status
from codeloop.agent.answer.usage import Usage, start_usage
from codeloop.agent.calls.call_rules import list_rulesets
from codeloop.agent.calls.early_import import end_timer, import_while_waiting
from codeloop.agent.calls.tool_calls import ToolCalls
from codeloop.agent.engine import Engine
from codeloop.agent.moves import AskModel, list_fallbacks
from codeloop.agent.request.projection import make_changed_files_messages
from codeloop.agent.request.request_cache import RequestCache
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
from codeloop.schema.api.agents import Agent
from codeloop.schema.event import StoredEvent, make_message_updated, make_part_updated
from codeloop.schema.ids import new_id
from codeloop.schema.limits import MODEL_FALLBACK_ATTEMPTS
from codeloop.schema.live_events import Busy, Toast, ToastShown
from codeloop.schema.message import AssistantMessage, UserMessage, format_model_ref
from codeloop.schema.part import StepStartPart
from codeloop.schema.wire import replace
from codeloop.workspace.snapshot.step_recorder import (
    Recorder,
    StepChanges,
    StepRecorder,
    UnrecordedStep,
)

if TYPE_CHECKING:
    from codeloop.agent.structured.structured_step import StructuredStep


async def ask_model(engine: Engine, session_id: str, move: AskModel, cache: RequestCache) -> None:
    """Send one request and process the answer: store its parts, run its calls, count its cost.

    Failures of the service and of tools are stored, not raised.
    A cancelled step is stored as interrupted.
    """
    agent = engine.get_agent(move.user.agent)
    model = engine.models.open(format_model_ref(move.user.model))
    info = make_answer(engine, session_id, move.user)
    request = await _prepare_request(engine, info, move.user, agent, model, cache)
    structured = _make_structured_step(engine, info, move, cache)
    if structured is not None:
        model, request = structured.prepare(model, request)
    show_status(engine, session_id, Busy())
    request = await _store_start(engine, info, request)
    draft = AnswerDraft(engine.store, session_id, info.id)
    recorder = _make_recorder(engine, info)
    calls = ToolCalls(
        engine,
        agent,
        info,
        recorder,
        toolbox=structured.toolbox if structured is not None else None,
    )
    usage = start_usage(
        engine,
        session_id,
        model.info,
        request,
        kind="turn",
        message_id=info.id,
        estimate=cache.token_estimate,
    )
    is_complete = False
    with InterruptionGuard(engine, info, usage):
        try:
            await fault_injection.pass_point_async("step.start")
            finished = await _stream(engine, model, request, draft, calls, usage)
            await engine.hooks.complete_texts(engine.store, info)
            # Calls may take long, and the process may end meanwhile,
            # so the cost of the request is stored now.
            if calls.has_tool_calls:
                usage.store_sums(engine.store, session_id, make_message_updated(usage.add_to(info)))
            await calls.join(finished)
            is_complete = True
        finally:
            await calls.cancel()
            draft.close()
            changes = await _store_changes(
                engine, usage.add_to(info), recorder, is_complete=is_complete
            )
        await fault_injection.pass_point_async("step.finish")
        continues = calls.has_tool_calls
        extra_events: list[StoredEvent] = []
        if structured is not None:
            info, finished, continues, extra_events = await structured.finish(
                info, finished, has_called=continues
            )
        store_finish(
            engine, info, finished, usage, changes, continues=continues, extra_events=extra_events
        )
    recorder.forget()


def _make_structured_step(
    engine: Engine, info: AssistantMessage, move: AskModel, cache: RequestCache
) -> "StructuredStep | None":
    """Return the tool or format of a required answer; None: none is required."""
    if move.required_format is None:
        return None
    # Imported late: few prompts ask for a format.
    from codeloop.agent.structured.structured_step import StructuredStep

    return StructuredStep(engine, info, move.required_format, cache)


async def _prepare_request(
    engine: Engine,
    info: AssistantMessage,
    user: UserMessage,
    agent: Agent,
    model: ChatModel,
    cache: RequestCache,
) -> ModelRequest:
    """Build the request of a step, with the additions of the prompt `user`
    and of the extensions.
    """
    conversation = engine.store.read_context(info.session_id)
    dropped_parts = cache.select_outputs_to_drop(conversation, model.info, now=info.time.created)
    if dropped_parts:
        engine.store.append(*map(make_part_updated, dropped_parts))
    request = _make_request(engine, info, agent, model, cache)
    if user.system:
        request = replace(request, system=f"{request.system}\n\n{user.system}")
    return await engine.hooks.change_request(engine.store, user, model.info, request)


def _make_request(
    engine: Engine, info: AssistantMessage, agent: Agent, model: ChatModel, cache: RequestCache
) -> ModelRequest:
    """Build the request of the step `info`: system prompt, tools, the whole conversation."""
    session_id = info.session_id
    conversation = engine.store.read_context(session_id)
    rulesets, *further_lists = list_rulesets(engine, session_id, agent)
    if not engine.turn_settings.is_attended:
        further_lists.append((UNATTENDED_RULES,))
    options = {**model.info.options, **agent.options}
    if info.variant is not None:
        from codeloop.model.catalog.variants import apply_variant

        options = apply_variant(options, model.info, info.variant)
    return ModelRequest(
        system=cache.get_system_prompt(engine, conversation.session, agent, model.info),
        messages=cache.get_messages(conversation, model.info, now=info.time.created),
        tools=cache.get_tools(
            engine.toolbox,
            model.info,
            rulesets,
            tuple(further_lists),
            needed=cache.find_needed_tools(engine, session_id),
        ),
        session_id=session_id,
        temperature=agent.temperature,
        top_p=agent.top_p,
        options=options,
        wants_hour_cache=engine.turn_settings.wants_hour_cache,
        max_attempts=MODEL_FALLBACK_ATTEMPTS.value
        if list_fallbacks(model.info.ref, engine.turn_settings)
        else None,
    )


async def _store_start(
    engine: Engine, info: AssistantMessage, request: ModelRequest
) -> ModelRequest:
    """Store the empty answer, with the files that others changed meanwhile;
    return the request that names them.
    """
    start = StepStartPart(id=new_id("prt"), session_id=info.session_id, message_id=info.id)
    changed_files = None
    if not engine.workspace.read_log.is_empty:
        from codeloop.agent.request.changed_files import take_changed_files

        changed_files = await take_changed_files(engine, info)
    if changed_files is None:
        engine.store.append(make_message_updated(info), make_part_updated(start))
        return request
    engine.store.append(
        make_message_updated(info), make_part_updated(start), make_part_updated(changed_files)
    )
    return replace(
        request, messages=(*request.messages, *make_changed_files_messages(changed_files))
    )


async def _stream(
    engine: Engine,
    model: ChatModel,
    request: ModelRequest,
    draft: AnswerDraft,
    calls: ToolCalls,
    usage: Usage,
) -> Finished:
    """Add the model's events to the draft, start calls as they become complete,
    and count the usage.
    """
    retry_status = RetryStatus(engine, request.session_id)
    calls.offered_tools = frozenset(spec.name for spec in request.tools)
    early_import = import_while_waiting(calls.offered_tools)
    try:
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                end_timer(early_import)
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
                        await fault_injection.pass_point_async("step.call_ready")
                        calls.start(event)
                    case RetryScheduled():
                        draft.restart()
                        calls.drop_incomplete()
                        retry_status.begin(event)
                    case Finished():
                        draft.close()
                        # Some models write their calls as text,
                        # and the service then reports a plain end.
                        if event.reason == "stop" and not calls.has_tool_calls:
                            calls.start_text_tool_calls()
                        return event
        # The service closed the stream without a reason; the answer counts as complete.
        draft.close()
        usage.count_event(Finished("stop"))
        return Finished("stop")
    finally:
        end_timer(early_import)
        retry_status.close()


def _make_recorder(engine: Engine, info: AssistantMessage) -> Recorder:
    if engine.snapshots is None:
        return UnrecordedStep(engine.workspace.root)
    return StepRecorder(engine.snapshots, info.session_id, info.id)


async def _store_changes(
    engine: Engine, info: AssistantMessage, recorder: Recorder, *, is_complete: bool
) -> StepChanges | None:
    """Store the files that a step has changed, however it ended, and return its changes.

    The end of a step that is not complete is stored, too.
    """
    changes = await recorder.finish()
    for note in recorder.notes:
        engine.store.publish_live(ToastShown(properties=Toast(message=note, variant="warning")))
    if changes is not None:
        # Imported late: an answer without calls changes nothing.
        from codeloop.agent.answer.cut_off_steps import make_change_events

        if events := make_change_events(info, changes, is_complete=is_complete):
            engine.store.append(*events)
    if not is_complete:
        recorder.forget()
    return changes
