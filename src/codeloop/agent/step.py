"""One step: one request to the model, its answer folded into parts, its tool calls run as they come."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from types import TracebackType

import msgspec

from codeloop.agent.answer.draft import Draft
from codeloop.agent.answer.usage import Usage
from codeloop.agent.engine import Engine, model_ref
from codeloop.agent.moves import AskModel, Delegate, models_left
from codeloop.agent.recovery import ABORTED, closing
from codeloop.agent.request.cache import RequestCache
from codeloop.agent.request.projection import CHANGED_FILES, describe_changed_files
from codeloop.agent.tool_calls import ToolCalls
from codeloop.kit import fault_injection
from codeloop.kit.terminal_text import one_line
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
from codeloop.permission.defaults import UNATTENDED
from codeloop.schema.agent import Agent
from codeloop.schema.errors import MessageAbortedError, MessageError, UnknownData, UnknownError, describe_failure
from codeloop.schema.event import StoredEvent, message_updated, part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import MODEL_FALLBACK_ATTEMPTS
from codeloop.schema.live_events import (
    Busy,
    Retry,
    SessionErrored,
    SessionFailure,
    SessionState,
    Status,
    StatusChanged,
    Toast,
    ToastShown,
)
from codeloop.schema.message import (
    NO_TOKENS,
    AssistantMessage,
    AssistantTime,
    MessagePath,
    UserMessage,
)
from codeloop.schema.part import PatchPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import next_created
from codeloop.tool.tool import Subtask, SubtaskResult
from codeloop.workspace.snapshot.step_recorder import StepRecorder

_PATH = 200  # characters of a file's name
_LOG = logging.getLogger("codeloop.agent")


async def ask_model(engine: Engine, session_id: str, move: AskModel, cache: RequestCache) -> None:
    """Send one request and process the answer: store its parts, run its calls, count its cost.

    What the service or a tool does wrong is stored, not raised. A cancel stores what there is as interrupted.
    """
    agent = engine.agent(move.user.agent)
    model = engine.models.open(model_ref(move.user.model))
    info = new_message(engine, session_id, move.user)
    view = engine.store.context_view(session_id)
    if worth := cache.find_worth_dropping(view, model.info, info.time.created):
        engine.store.append(*map(part_updated, worth))
    request = make_request(engine, info, agent, model, cache)
    if move.user.system:
        request = replace(request, system=f"{request.system}\n\n{move.user.system}")
    request = await engine.hooks.change_request(engine, move.user, model.info, request)
    wanted = None
    if move.wanted is not None:
        from codeloop.agent.structured.answer import StructuredStep

        wanted = StructuredStep(engine, info, move.wanted, cache)
        model, request = wanted.prepare(model, request)
    show_status(engine, session_id, Busy())
    start = StepStartPart(id=new_id("prt"), session_id=session_id, message_id=info.id)
    changed = await _describe_changed_files(engine, info)
    if changed is not None:
        request = replace(request, turns=(*request.turns, *describe_changed_files(changed)))
    events = [] if changed is None else [part_updated(changed)]
    engine.store.append(message_updated(info), part_updated(start), *events)
    draft = Draft(engine.store, session_id, info.id)
    recorder = StepRecorder(engine.snapshots) if engine.snapshots is not None else None
    calls = ToolCalls(engine, agent, info, recorder, wanted.toolbox if wanted else None)
    usage = Usage(model.info.prices, request, engine.policy.budget)
    has_everything = False
    with StoredAbort(engine, info, usage):
        try:
            await fault_injection.reach("step.start")
            finished = await _stream(engine, model, request, draft, calls, usage)
            draft.close()
            await engine.hooks.complete_texts(engine, info)
            if calls.any_made:  # they may take long, and the process may end meanwhile
                usage.append(engine.store, session_id, message_updated(usage.of(info)))
            await calls.join(finished)
            has_everything = True
        finally:
            await calls.cancel()
            draft.close()
            snapshot = await _store_changes(engine, usage.of(info), recorder, is_complete=has_everything)
        await fault_injection.reach("step.finish")
        has_called, more = calls.any_made, list[StoredEvent]()
        if wanted is not None:
            info, finished, has_called, more = await wanted.finish(info, finished, has_called=has_called)
        store_finish(engine, info, finished, usage, snapshot, has_called=has_called, more=more)


async def delegate(engine: Engine, session_id: str, move: Delegate) -> None:
    """Run the tool `task` for each subtask of a prompt, side by side; the model is asked next, with their results.

    A cancel stores what there is as interrupted.
    """
    first = move.work[0].agent
    info = replace(new_message(engine, session_id, move.user), mode=first, agent=first)
    show_status(engine, session_id, Busy())
    engine.store.append(message_updated(info))
    models, plain = {new_id("tool"): work.model for work in move.work}, engine.spawn

    async def spawn(engine: Engine, call: ToolPart, task: Subtask, report: Callable[[JSON], None]) -> SubtaskResult:
        return await plain(engine, call, replace(task, model=models.get(call.call_id)), report)

    engine = replace(engine, spawn=spawn)
    calls = ToolCalls(engine, engine.agent(move.user.agent), info)  # each subagent records its own steps
    with StoredAbort(engine, info):
        try:
            for call_id, work in zip(models, move.work, strict=True):
                payload = {"description": work.description, "prompt": work.prompt, "subagent_type": work.agent}
                calls.ready(CallReady(call_id, "task", msgspec.json.encode(payload).decode()))
            await calls.join(Finished("tool-calls"))
        finally:
            await calls.cancel()
        completed = replace(info.time, completed=now_ms())
        engine.store.append(message_updated(replace(info, finish="tool-calls", time=completed)))


def make_request(
    engine: Engine, info: AssistantMessage, agent: Agent, model: ChatModel, cache: RequestCache
) -> ModelRequest:
    """Build the request of the step `info`: system prompt, tools, the whole conversation."""
    session_id = info.session_id
    view = engine.store.context_view(session_id)
    rulesets, *ceilings = engine.rulesets(session_id, agent)
    if not engine.policy.attended:
        ceilings.append((UNATTENDED,))
    options = {**model.info.options, **agent.options}
    if info.variant is not None:
        from codeloop.model.catalog.variants import with_variant

        options = with_variant(options, model.info, info.variant)
    return ModelRequest(
        system=cache.system(engine, view.session, agent, model.info),
        turns=cache.turns(view, model.info, info.time.created),
        tools=cache.tools(engine.toolbox, model.info, rulesets, tuple(ceilings)),
        session_id=session_id,
        temperature=agent.temperature,
        top_p=agent.top_p,
        options=options,
        keep_hour=engine.policy.keep_hour,
        attempts=MODEL_FALLBACK_ATTEMPTS.value if models_left(model.info.ref, engine.policy) else None,
    )


async def _describe_changed_files(engine: Engine, info: AssistantMessage) -> TextPart | None:
    """Return the part that lists the files changed since they were read; None: none did.

    It has no text, so that no client shows it; the projection writes the line from its metadata.
    """
    if engine.workspace.read_log.is_empty:  # nothing read yet: no need to start a thread
        return None
    changed = await asyncio.to_thread(engine.workspace.read_log.take_changed, info.session_id)
    if not changed:
        return None
    names = [
        one_line(engine.workspace.shorten(real), _PATH) + ("" if is_there else " (deleted)")
        for real, is_there in sorted(changed.items())
    ]
    return TextPart(
        id=new_id("prt"),
        session_id=info.session_id,
        message_id=info.id,
        text="",
        synthetic=True,
        metadata={CHANGED_FILES: names},
    )


def show_status(engine: Engine, session_id: str, status: Status) -> None:
    """Show every client what a session is doing."""
    engine.store.publish_live(StatusChanged(properties=SessionState(session_id=session_id, status=status)))


def show_error(engine: Engine, session_id: str, error: MessageError) -> None:
    """Show every client why a turn failed, and log it."""
    if _LOG.hasHandlers():
        level = logging.INFO if isinstance(error, MessageAbortedError) else logging.ERROR
        _LOG.log(level, "%s: turn failed: %s", session_id, describe_failure(error))
    engine.store.publish_live(SessionErrored(properties=SessionFailure(session_id=session_id, error=error)))


def new_message(engine: Engine, session_id: str, user: UserMessage) -> AssistantMessage:
    """Return a new, empty answer to a prompt."""
    return AssistantMessage(
        id=new_id("msg"),
        session_id=session_id,
        parent_id=user.id,
        model_id=user.model.model_id,
        provider_id=user.model.provider_id,
        variant=user.model.variant,
        mode=user.agent,
        agent=user.agent,
        path=MessagePath(cwd=str(engine.workspace.directory), root=str(engine.workspace.root)),
        cost=0,
        tokens=NO_TOKENS,
        time=AssistantTime(created=next_created(engine.store.context_view(session_id), now_ms())),
    )


async def _stream(
    engine: Engine, model: ChatModel, request: ModelRequest, draft: Draft, calls: ToolCalls, usage: Usage
) -> Finished:
    """Fold the model's events into the draft, start calls as they become ready, and count what is used."""
    retry_status = _RetryStatus(engine, request.session_id)
    calls.offered = frozenset(spec.name for spec in request.tools)
    try:
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                retry_status.end()
                usage.take(event)
                match event:
                    case TextDelta(text=text, block=block, metadata=metadata):
                        draft.text(text, block, metadata)
                    case ReasoningDelta(text=text, block=block, metadata=metadata):
                        draft.reasoning(text, block, metadata)
                    case CallStarted(id=call_id, name=name):
                        draft.close()
                        draft.adopt_part(calls.open_call(call_id, name))
                    case CallDelta() | UsageUpdate():
                        pass
                    case CallReady():
                        await fault_injection.reach("step.call_ready")
                        calls.ready(event)
                    case RetryScheduled():
                        draft.restart()
                        calls.forget()
                        retry_status.begin(event)
                    case Finished():
                        draft.close()
                        if event.reason == "stop" and not calls.any_made:
                            calls.take_written()
                        return event
        usage.take(Finished("stop"))
        return Finished("stop")
    finally:
        retry_status.close()


class _RetryStatus:
    """Shows that a request waits to be sent again, and when the wait ends: after its time, or once events arrive."""

    def __init__(self, engine: Engine, session_id: str) -> None:
        self._engine = engine
        self._session_id = session_id
        self._is_waiting = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, event: RetryScheduled) -> None:
        """Show the wait, and log what went wrong."""
        if _LOG.hasHandlers():
            _LOG.warning("%s: request failed, attempt %d follows: %s", self._session_id, event.attempt, event.message)
        show_status(self._engine, self._session_id, Retry(attempt=event.attempt, message=event.message, next=event.at))
        self._is_waiting = True
        delay = event.at - now_ms()
        if delay > 0:
            self._timer = asyncio.get_running_loop().call_later(delay / 1000, self.end)

    def end(self) -> None:
        """Show that the session works again, if it waited."""
        if self._is_waiting:
            self.close()
            show_status(self._engine, self._session_id, Busy())

    def close(self) -> None:
        """Stop showing."""
        self._is_waiting = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def _store_changes(
    engine: Engine, info: AssistantMessage, recorder: StepRecorder | None, *, is_complete: bool
) -> str | None:
    """Store which files a step has changed, however it ended; return the work tree's state after it."""
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
        finish = [] if is_complete else [part_updated(_finish_part(info, "error", changes.after))]
        engine.store.append(part_updated(patch), *finish)
    return changes.after


def _finish_part(info: AssistantMessage, reason: str, snapshot: str | None) -> StepFinishPart:
    return StepFinishPart(
        id=new_id("prt"),
        session_id=info.session_id,
        message_id=info.id,
        reason=reason,
        cost=info.cost,
        tokens=info.tokens,
        snapshot=snapshot,
    )


def store_finish(
    engine: Engine,
    info: AssistantMessage,
    finished: Finished,
    usage: Usage,
    snapshot: str | None = None,
    *,
    has_called: bool = False,
    more: Sequence[StoredEvent] = (),
) -> None:
    """Store how the step ended, the session's new sums, and `more`, in one transaction."""
    info = usage.of(info)
    reason = "tool-calls" if has_called and finished.reason != "cut" else finished.reason
    # The calls decide, not the service's reason; a cut-off without calls is an error.
    if reason == "tool-calls" and not has_called:
        reason = "stop"
    if reason == "cut" and not has_called:
        broken = UnknownData(message="The connection broke before the answer was complete.")
        finished = Finished("error", finished.tokens, finished.error or UnknownError(data=broken))
    info = replace(
        info,
        finish=None if finished.error else reason,
        error=finished.error,
        time=replace(info.time, completed=max(now_ms(), info.time.created)),
    )
    finish = _finish_part(info, reason, snapshot)
    usage.append(engine.store, info.session_id, part_updated(finish), message_updated(info), *more)
    if finished.error is not None:
        show_error(engine, info.session_id, finished.error)


class StoredAbort:
    """Close an answer as interrupted when the block raises, with its error.

    `usage`: what the request has used until then.
    """

    def __init__(self, engine: Engine, info: AssistantMessage, usage: Usage | None = None) -> None:
        self._engine = engine
        self._info = info
        self._usage = usage

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Store the end, if the block raised."""
        if error is None:
            return
        cancelled = isinstance(error, asyncio.CancelledError)
        reason = ABORTED if cancelled else UnknownError(data=UnknownData(message=str(error) or type(error).__name__))
        store, info = self._engine.store, self._info
        parts = store.context_view(info.session_id).parts(info.id)
        if self._usage is None:
            store.append(*closing(info, parts, reason))
        else:
            self._usage.append(store, info.session_id, *closing(self._usage.of(info), parts, reason))
        show_error(self._engine, info.session_id, reason)
