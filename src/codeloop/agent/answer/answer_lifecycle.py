"""Makes answers, and ends them in the store: as completed, as failed, or as interrupted."""

import asyncio
from collections.abc import Sequence
from types import TracebackType

from codeloop.agent.answer.live_status import show_error
from codeloop.agent.answer.usage import Usage
from codeloop.agent.engine import Engine
from codeloop.agent.recovery import ABORTED_ERROR, make_closing_events
from codeloop.model.chat import Finished
from codeloop.schema.errors import UnknownData, UnknownError
from codeloop.schema.event import StoredEvent, make_message_updated, make_part_updated
from codeloop.schema.ids import new_id, now_ms
from codeloop.schema.message import (
    NO_TOKENS,
    AssistantMessage,
    AssistantTime,
    MessagePath,
    UserMessage,
)
from codeloop.schema.part import StepFinishPart
from codeloop.schema.wire import replace
from codeloop.store.conversation import choose_creation_time
from codeloop.workspace.snapshot.step_recorder import StepChanges


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
