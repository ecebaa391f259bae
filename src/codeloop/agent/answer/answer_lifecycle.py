"""Answers from their beginning to their end in the store: the streaming text and reasoning,
and the end, as completed, as failed, or as interrupted.
"""

import asyncio
import time
from collections.abc import Sequence
from types import TracebackType

from codeloop.agent.answer.live_status import show_error
from codeloop.agent.answer.usage import Usage
from codeloop.agent.engine import Engine
from codeloop.agent.recovery import ABORTED_ERROR, make_closing_events
from codeloop.kit import fault_injection
from codeloop.model.chat import Finished
from codeloop.schema.errors import UnknownData, UnknownError
from codeloop.schema.event import (
    PartGone,
    PartRemoved,
    StoredEvent,
    make_message_updated,
    make_part_updated,
)
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.limits import CHECKPOINT_INTERVAL
from codeloop.schema.live_events import Delta, PartDelta
from codeloop.schema.message import (
    NO_TOKENS,
    AssistantMessage,
    AssistantTime,
    MessagePath,
    UserMessage,
)
from codeloop.schema.part import ReasoningPart, Span, StepFinishPart, TextPart
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import choose_creation_time
from codeloop.store.store import Store
from codeloop.workspace.snapshot.step_recorder import StepChanges


class AnswerDraft:
    """Folds deltas into parts. At most one part is open;
    a new block or type closes it and opens the next.
    """

    def __init__(self, store: Store, session_id: str, message_id: str) -> None:
        self._store = store
        self._session_id = session_id
        self._message_id = message_id
        self._open_part: TextPart | ReasoningPart | None = None
        self._block = 0
        """The service's number of the block that the open part belongs to."""
        self._pieces: list[str] = []
        self._metadata: JSON = {}
        self._stored_at = 0.0
        """When the open part was last stored (`time.monotonic`)."""
        self._part_ids: list[str] = []
        self._stale_part_ids: list[str] = []
        """The parts of abandoned attempts, which are still in the store."""

    def add_text(self, delta: str, block: int, metadata: JSON) -> None:
        """Add text; what `metadata` holds goes back to the provider unchanged."""
        if not isinstance(self._open_part, TextPart) or self._block != block:
            if not delta:
                # A block without text has nothing to send back to the service.
                return
            self._start(TextPart, block)
        self._metadata.update(metadata)
        if delta:
            self._add(delta)

    def add_reasoning(self, delta: str, block: int, metadata: JSON) -> None:
        """Add thinking; what `metadata` holds goes back to the provider unchanged."""
        if not isinstance(self._open_part, ReasoningPart) or self._block != block:
            self._start(ReasoningPart, block)
        self._metadata.update(metadata)
        if delta:
            self._add(delta)

    def adopt_part(self, part_id: str) -> None:
        """Add a part made elsewhere (a started call) to this attempt,
        so that a restart removes it.
        """
        self._drop_stale()
        self._part_ids.append(part_id)

    def restart(self) -> None:
        """Start a new attempt: earlier parts are removed as soon as something new comes,
        and stay if nothing does.
        """
        self.close()
        self._stale_part_ids += self._part_ids
        self._part_ids = []

    def close(self) -> None:
        """Store the open part as complete."""
        if self._open_part is None:
            return
        part = self._build_part()
        start = part.time.start if part.time else now_ms()
        self._store.append(
            make_part_updated(replace(part, time=Span(start=start, end=max(now_ms(), start))))
        )
        self._open_part = None

    def _start(self, part_type: type[TextPart] | type[ReasoningPart], block: int) -> None:
        self.close()
        self._drop_stale()
        part = part_type(
            id=new_id("prt"),
            session_id=self._session_id,
            message_id=self._message_id,
            text="",
            time=Span(start=now_ms()),
        )
        self._store.append(make_part_updated(part))
        self._part_ids.append(part.id)
        self._open_part, self._block, self._pieces, self._metadata = part, block, [], {}
        self._stored_at = time.monotonic()

    def _add(self, delta: str) -> None:
        """Show a piece of the open part at once; store the part now and then,
        for the case of a crash.
        """
        part = self._open_part
        if part is None:
            return
        self._pieces.append(delta)
        self._store.publish_live(
            PartDelta(
                properties=Delta(
                    session_id=self._session_id,
                    message_id=self._message_id,
                    part_id=part.id,
                    field="text",
                    delta=delta,
                )
            )
        )
        fault_injection.pass_point("step.delta")
        if time.monotonic() - self._stored_at >= CHECKPOINT_INTERVAL.seconds:
            self._store.append(make_part_updated(self._build_part()))
            self._stored_at = time.monotonic()

    def _build_part(self) -> TextPart | ReasoningPart:
        """Return the open part with all of its text so far."""
        if self._open_part is None:
            raise AssertionError("no part is open")
        self._pieces = ["".join(self._pieces)]
        return replace(self._open_part, text=self._pieces[0], metadata=self._metadata or None)

    def _drop_stale(self) -> None:
        """Remove the parts of abandoned attempts from the store."""
        if not self._stale_part_ids:
            return
        removals = [
            PartGone(session_id=self._session_id, message_id=self._message_id, part_id=part_id)
            for part_id in self._stale_part_ids
        ]
        self._store.append(*(PartRemoved(properties=properties) for properties in removals))
        self._stale_part_ids = []


def make_answer(engine: Engine, session_id: str, prompt: UserMessage) -> AssistantMessage:
    """Return a new, empty answer to a prompt."""
    return AssistantMessage(
        id=new_id("msg"),
        session_id=session_id,
        parent_id=prompt.id,
        model_id=prompt.model.model_id,
        provider_id=prompt.model.provider_id,
        variant=prompt.model.variant,
        mode=prompt.agent,
        agent=prompt.agent,
        path=MessagePath(cwd=str(engine.workspace.directory), root=str(engine.workspace.root)),
        cost=0,
        tokens=NO_TOKENS,
        time=AssistantTime(
            created=choose_creation_time(engine.store.read_context(session_id), now_ms())
        ),
    )


def make_finish_part(
    info: AssistantMessage, reason: str, changes: StepChanges | None
) -> StepFinishPart:
    """Return the part that ends a step. `changes`: of files; None: none were recorded."""
    return StepFinishPart(
        id=new_id("prt"),
        session_id=info.session_id,
        message_id=info.id,
        reason=reason,
        cost=info.cost,
        tokens=info.tokens,
        snapshot=changes.after if changes is not None else None,
        unrecorded=dict(changes.unrecorded) or None if changes is not None else None,
    )


def store_finish(
    engine: Engine,
    info: AssistantMessage,
    finished: Finished,
    usage: Usage,
    changes: StepChanges | None = None,
    *,
    continues: bool = False,
    extra_events: Sequence[StoredEvent] = (),
) -> None:
    """Store how the step ended, the session's new sums, and `extra_events`, in one transaction.

    `continues`: another step follows, as after calls. The stored reason is made to fit it: the loop
    decides by that reason, and the service's may contradict it.
    """
    info = usage.add_to(info)
    reason = finished.reason
    if continues and reason != "cut":
        reason = "tool-calls"
    elif not continues and reason == "tool-calls":
        reason = "stop"
    elif not continues and reason == "cut":
        data = UnknownData(message="The connection broke before the answer was complete.")
        finished = Finished("error", finished.tokens, finished.error or UnknownError(data=data))
    info = replace(
        info,
        finish=None if finished.error else reason,
        error=finished.error,
        time=replace(info.time, completed=max(now_ms(), info.time.created)),
    )
    finish = make_finish_part(info, reason, changes)
    usage.store_sums(
        engine.store,
        info.session_id,
        make_part_updated(finish),
        make_message_updated(info),
        *extra_events,
    )
    if finished.error is not None:
        show_error(engine, info.session_id, finished.error)


class InterruptionGuard:
    """Guards the block that writes an answer: when it raises, the answer is closed as interrupted,
    with the error.

    `usage`: what the request has used until then.
    """

    def __init__(self, engine: Engine, info: AssistantMessage, usage: Usage | None = None) -> None:
        self._engine = engine
        self._info = info
        self._usage = usage

    def __enter__(self) -> None:
        """Do nothing: only the end of the block counts."""

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        """Store the end, if the block raised."""
        if error is None:
            return
        if isinstance(error, asyncio.CancelledError):
            reason = ABORTED_ERROR
        else:
            reason = UnknownError(data=UnknownData(message=str(error) or type(error).__name__))
        store, info = self._engine.store, self._info
        parts = store.read_context(info.session_id).find_parts(info.id)
        if self._usage is None:
            store.append(*make_closing_events(info, parts, reason))
        else:
            self._usage.store_sums(
                store,
                info.session_id,
                *make_closing_events(self._usage.add_to(info), parts, reason),
            )
        show_error(self._engine, info.session_id, reason)
