"""The tool calls of one step: validates them, runs each as soon as it is complete,
and always stores a result.

Services refuse a conversation in which a call has no result, so every failure becomes one.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from codeloop.agent.calls.call_results import (
    CallResults,
    describe_failure,
    make_error_state,
    make_refused_part,
)
from codeloop.agent.engine import Engine
from codeloop.agent.recovery import (
    INTERRUPTED_ERROR,
    NOT_ALLOWED_ERROR,
    NOT_STARTED_ERROR,
    list_open_calls,
    mark_interrupted,
)
from codeloop.kit import fault_injection
from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.model.chat import CallReady, Finished
from codeloop.permission.gate import Denied, Rejected
from codeloop.schema.api.agents import Agent
from codeloop.schema.errors import HookRefused
from codeloop.schema.event import make_part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.installation import InstallationChanged, find_change
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    ADVICE_KEY,
    TextPart,
    ToolPart,
    ToolStart,
    ToolStatePending,
    ToolStateRunning,
)
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, replace
from codeloop.tool.superseded_outputs import REPEATABLE_TOOLS, UNCHANGED_KEY
from codeloop.tool.tool import TURN_ENDED_KEY, ToolFailure, ToolResult
from codeloop.tool.toolbox import InvalidToolCall, PreparedCall, Toolbox
from codeloop.workspace.snapshot.step_recorder import Recorder

if TYPE_CHECKING:
    from codeloop.agent.calls.call_context import CallContext

# By the reason why an answer ended: the result of a call whose arguments never became complete;
# then for other reasons.
_CUT_SHORT_REASONS = {
    "length": "The answer reached the model's output limit before the call's arguments were complete: it was not run.",
    "cut": "The connection broke before the call's arguments were complete, so it was not run.",
}
_ENDED_EARLY_REASON = (
    "The answer ended before the call's arguments were complete, so it was not run."
)
_SHORTER_CALL_ADVICE = {
    ADVICE_KEY: "Make the call again with less in it, for example a file in several pieces."
}
# Every format of a call written as text contains one of these, or ends with a parenthesis.
_TEXT_CALL_MARKS = frozenset("<[{")
_TEXT_CALL_NOTE = "the call came as text and was run; make calls as the service takes them"
_SAME_LOOK = ToolResult(
    "", "The same call stands above in this step, with its result.", {UNCHANGED_KEY: True}
)
_DUPLICATE_REASON = "Not run: the same call, with the same id, was sent before it in this answer."
_REJECTED_REASON = "Not run: the user rejected an earlier call of the same step."
_TURN_ENDED_REASON = "Not run: a hook ended the turn with an earlier call of the same step."
_GROUND_LOST_REASON = "Not run: the folder is gone, as an earlier call of the same step found."


class StartedCall(Struct):
    """A started call. `is_concurrent`: it changes nothing,
    so it may run at the same time as other such calls.
    """

    task: asyncio.Task[None]
    is_concurrent: bool


class ToolCalls:
    """The calls of one step.

    A call runs as soon as it is complete. Calls that change nothing run at the same time; a call
    that changes something waits for all calls before it, and all later ones wait for it, so the
    effect is that of one call after the other.
    """

    def __init__(
        self,
        engine: Engine,
        agent: Agent,
        info: AssistantMessage,
        recorder: Recorder | None = None,
        toolbox: Toolbox | None = None,
    ) -> None:
        """`toolbox`: the tools of this step; None: those of the engine.
        Subagents always get those of the engine.
        """
        self._engine = engine
        self._toolbox = toolbox or engine.toolbox
        self._agent = agent
        self._info = info
        self._recorder = recorder
        self._results = CallResults(engine)
        self._incomplete_parts: dict[str, list[ToolPart]] = {}
        """By call id: services may send several calls with one id."""
        self._started_calls: list[StartedCall] = []
        """Those that have ended, too."""
        self._skip_reason = ""
        """Why the calls that have not started yet are not run, as their result;
        "": they are run.
        """
        self._is_paid: asyncio.Event | None = (
            asyncio.Event() if engine.turn_settings.is_spending_limited else None
        )
        """Set when the cost of the answer is known, and its calls may run;
        None: what it costs does not matter.
        """
        self.offered_tools: frozenset[str] | None = None
        """The names of the tools that the model was offered; None: unknown."""
        self._has_tool_calls = False
        self._ready_calls: list[CallReady] = []
        self._looks: set[tuple[str, bytes]] = set()
        """Names and arguments of the calls that only look at something,
        since the last call that may change it.
        """

    @property
    def has_tool_calls(self) -> bool:
        """Whether the answer holds any call, complete or not."""
        return self._has_tool_calls

    def open_call(self, call_id: str, name: str) -> str:
        """Store a call whose arguments are still streaming in; return the id of its part."""
        self._has_tool_calls = True
        part = ToolPart(
            id=new_id("prt"),
            session_id=self._info.session_id,
            message_id=self._info.id,
            call_id=call_id,
            tool=name,
            state=ToolStatePending(input={}, raw=""),
        )
        self._incomplete_parts.setdefault(call_id, []).append(part)
        self._engine.store.append(make_part_updated(part))
        return part.id

    def start_text_tool_calls(self) -> None:
        """Start the calls that the answer ends with as text, if it made no others,
        and remove them from the text.
        """
        # A step with a required format has its own toolbox;
        # its answer, JSON, looks like a call written as text.
        if self._toolbox is not self._engine.toolbox:
            return
        conversation = self._engine.store.read_context(self._info.session_id)
        parts = conversation.find_parts(self._info.id)
        texts = [part for part in parts if isinstance(part, TextPart) and part.text.strip()]
        if not texts:
            return
        last = texts[-1]
        has_mark = any(mark in last.text for mark in _TEXT_CALL_MARKS) or last.text.rstrip(
            "`\n "
        ).endswith(")")
        if not has_mark:
            return
        # Imported late: most answers hold no call as text.
        from codeloop.agent.calls.text_tool_calls import find_text_calls

        calls, rest = find_text_calls(last.text, self.offered_tools or frozenset())
        if not calls:
            return
        self._engine.store.append(make_part_updated(replace(last, text=rest)))
        for call in calls:
            self.start(CallReady(new_id("tool"), call.name, call.arguments), note=_TEXT_CALL_NOTE)

    def start(self, call: CallReady, *, note: str = "") -> None:
        """Start a complete call; a call that was sent twice runs once.
        `note`: is added to the result for the model.
        """
        if call.id and call in self._ready_calls:
            duplicates = self._incomplete_parts.get(call.id)
            if duplicates:
                part = duplicates.pop(0)
                self._engine.store.append(
                    make_part_updated(replace(part, state=make_error_state(_DUPLICATE_REASON)))
                )
            return
        self._ready_calls.append(call)
        if not self._incomplete_parts.get(call.id):
            self.open_call(call.id, call.name)
        part = self._incomplete_parts[call.id].pop(0)
        prepared = self._toolbox.prepare(call.name, call.arguments, self.offered_tools)
        if isinstance(prepared, InvalidToolCall):
            self._engine.store.append(make_part_updated(make_refused_part(part, prepared)))
            return
        if note:
            prepared = replace(prepared, note="; ".join(filter(None, (prepared.note, note))))
        is_concurrent = prepared.tool.traits.concurrent
        part = replace(part, tool=prepared.tool.name)
        if self._is_look_again(prepared):
            state = ToolStateRunning(input=prepared.input, time=ToolStart(start=now_ms()))
            self._results.store(replace(part, state=state), state.time.start, _SAME_LOOK)
            return
        predecessors = [
            call.task for call in self._started_calls if not (is_concurrent and call.is_concurrent)
        ]
        task = asyncio.create_task(self._run(part, prepared, predecessors))
        self._started_calls.append(StartedCall(task, is_concurrent))

    def _is_look_again(self, prepared: PreparedCall) -> bool:
        """Record a call; return whether the step has an equal one already,
        after which nothing can have changed.
        """
        if not prepared.tool.traits.concurrent:
            self._looks.clear()
        if prepared.tool.name not in REPEATABLE_TOOLS:
            return False
        look = (prepared.tool.name, msgspec.json.encode(prepared.input, order="sorted"))
        is_known = look in self._looks
        self._looks.add(look)
        return is_known

    def drop_incomplete(self) -> None:
        """Forget the calls whose arguments are incomplete,
        since the request is sent again and repeats them.
        """
        self._incomplete_parts.clear()
        self._has_tool_calls = bool(self._started_calls)

    async def join(self, finished: Finished) -> None:
        """Wait for all calls, and store an error as the result of each that never became complete.

        The cost of the answer is stored. If it reached a limit of the turn, no call of it is run.
        """
        if self._started_calls:
            self._release_calls()
            await asyncio.gather(*(started.task for started in self._started_calls))
        reason = _CUT_SHORT_REASONS.get(finished.reason, _ENDED_EARLY_REASON)
        advice = _SHORTER_CALL_ADVICE if finished.reason == "length" else None
        for part in self._list_open_calls():
            self._engine.store.append(
                make_part_updated(replace(part, state=make_error_state(reason, advice)))
            )

    def _release_calls(self) -> None:
        """Let the calls run that waited for the cost of the answer,
        unless it has reached a limit.
        """
        if self._is_paid is None:
            return
        # Imported late: most turns may spend what they want.
        from codeloop.agent.turn_limits import find_spending_limit

        session = self._engine.store.read_context(self._info.session_id).session
        if limit := find_spending_limit(session, self._engine.turn_settings):
            self._skip_reason = f"Not run: {limit[0].lower()}{limit[1:]}"
        self._is_paid.set()

    def _list_open_calls(self) -> list[ToolPart]:
        """Return the stored calls without a result, including those of an abandoned attempt."""
        conversation = self._engine.store.read_context(self._info.session_id)
        return list_open_calls(conversation.find_parts(self._info.id))

    async def cancel(self) -> None:
        """Cancel the running calls and wait for their end;
        each stores its own interrupted state.
        """
        await cancel_all(started.task for started in self._started_calls)

    async def _run(
        self, part: ToolPart, prepared_call: PreparedCall, predecessors: list[asyncio.Task[None]]
    ) -> None:
        """Run a call after its predecessors and store its result;
        any failure becomes a result, too.
        """
        if self._is_paid is not None:
            await self._is_paid.wait()
        if predecessors:
            await asyncio.wait(predecessors)
        start = now_ms()
        part = replace(
            part, state=ToolStateRunning(input=prepared_call.input, time=ToolStart(start=start))
        )
        # An earlier call of the step was refused, or ended the turn.
        if self._skip_reason:
            self._results.store_error(part, start, self._skip_reason)
            return
        if loss := self._engine.workspace.ground.find_loss():
            # Nothing must be made at a path that leads elsewhere now, so the turn ends.
            self._skip_reason = _GROUND_LOST_REASON
            advice = f"{loss} Put it back, or start codeloop where it is now."
            self._results.store_error(
                part, start, f"{loss} Nothing was done.", {TURN_ENDED_KEY: advice}
            )
            return
        self._engine.store.append(make_part_updated(part))
        # Imported late: an answer without calls needs none of it.
        from codeloop.agent.calls.call_context import CallContext

        context = CallContext(self._engine, self._agent, part, self._recorder)
        try:
            await fault_injection.pass_point_async("call.start")
            result = await self._run_with_hooks(prepared_call, context)
            # The tool has asked nothing, so the repetition is asked about now,
            # before the model sees the result.
            if context.first_question.repeat_need is not None:
                await context.ask()
            await fault_injection.pass_point_async("call.effect")
            result = self._results.complete(result, prepared_call, part.session_id)
            if TURN_ENDED_KEY in result.metadata:
                self._skip_reason = self._skip_reason or _TURN_ENDED_REASON
            self._results.store(context.part, start, result)
        except asyncio.CancelledError:
            reason = NOT_ALLOWED_ERROR if context.first_question.is_waiting else INTERRUPTED_ERROR
            self._engine.store.append(
                make_part_updated(mark_interrupted(context.part, now_ms(), reason))
            )
            raise
        except InstallationChanged:
            self._end_with_turn(context.part)
            raise
        except (Denied, HookRefused, Rejected, ToolFailure) as error:
            self._skip_reason = self._skip_reason or _find_skip_reason(error)
            self._results.store_error(context.part, start, str(error), describe_failure(error))
        # A tool of an extension may raise anything;
        # the model has to learn of it, and the turn goes on.
        except Exception as error:
            if change := find_change(error):
                self._end_with_turn(context.part)
                raise change from error
            text = f"The {part.tool} tool failed unexpectedly: {type(error).__name__}: {error}"
            self._results.store_error(context.part, start, text)
        finally:
            context.close()
        await fault_injection.pass_point_async("call.result")

    def _end_with_turn(self, part: ToolPart) -> None:
        """Store a call as interrupted: what it needs was replaced by another version,
        so the turn ends with it.
        """
        self._skip_reason = NOT_STARTED_ERROR
        self._engine.store.append(make_part_updated(mark_interrupted(part, now_ms())))

    async def _run_with_hooks(
        self, prepared_call: PreparedCall, context: "CallContext"
    ) -> ToolResult:
        """Run a call, with the extensions' changes."""
        from codeloop.tool.call_hooks import run_call

        return await run_call(
            self._engine.hooks.runner, prepared_call, context, partial(self._prepare_run, context)
        )

    async def _prepare_run(self, context: "CallContext", prepared_call: PreparedCall) -> None:
        """Store the arguments that extensions may have changed,
        and have a repeated call asked about.

        Otherwise a model could run in circles unseen.
        """
        from codeloop.agent.calls.repeated_calls import is_repeated

        context.replace_arguments(prepared_call.input)
        part = context.part
        if is_repeated(self._engine.store.read_context(part.session_id).entries, part):
            metadata: JSON = {"tool": part.tool, "input": prepared_call.input}
            context.first_question.repeat_need = Need(
                permission="doom_loop",
                patterns=(part.tool,),
                always=(part.tool,),
                metadata=metadata,
            )


def _find_skip_reason(error: Exception) -> str:
    """Return why the later calls of a step are not run after this failure of one;
    "": they are run.
    """
    match error:
        case HookRefused(ends=True):
            return _TURN_ENDED_REASON
        case Rejected(message=None):
            return _REJECTED_REASON
        case _:
            return ""
