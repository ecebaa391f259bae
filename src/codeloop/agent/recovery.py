"""Closes answers and calls that a crash or a cancel left open.

No tool call is ever repeated automatically: it is not known how far it got,
and it may have changed something.
"""

from codeloop.kit import fault_injection
from codeloop.schema.errors import INTERRUPTED_TEXT, ErrorText, MessageAbortedError, MessageError
from codeloop.schema.event import (
    PermissionAnswer,
    PermissionReplied,
    QuestionRefusal,
    QuestionRejected,
    StoredEvent,
    make_message_updated,
    make_part_updated,
)
from codeloop.schema.ids import now_ms
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import (
    ADVICE_KEY,
    Part,
    ReasoningPart,
    Span,
    TextPart,
    ToolPart,
    ToolStateError,
    ToolStatePending,
    ToolStateRunning,
    ToolTime,
)
from codeloop.schema.wire import replace
from codeloop.store.conversation import Entry
from codeloop.store.store import Store

NOT_STARTED_ERROR = "Interrupted before the call was started. It was not run."
INTERRUPTED_ERROR = "Interrupted: the call was started, but how far it got is unknown."
CHECK_FIRST_ADVICE = (
    "It was not, and will not be, run again by itself. Check what it did before you repeat it."
)
"""Advice about an interrupted call, for the model only."""
NOT_ALLOWED_ERROR = "Interrupted while waiting for permission. It was not run."
ABORTED_ERROR = MessageAbortedError(data=ErrorText(message="Aborted"))
_INTERRUPTED_ANSWER_ERROR = MessageAbortedError(data=ErrorText(message=INTERRUPTED_TEXT))


def recover(store: Store, session_id: str, entries: tuple[Entry, ...]) -> None:
    """Close the answers that a killed program left open, and reject the session's open questions.
    Idempotent.

    It is one transaction. `entries`: only open answers, each of which is stored as interrupted, and
    prompts, which are passed over.
    """
    events: list[StoredEvent] = []
    for entry in entries:
        if isinstance(entry.info, AssistantMessage):
            events += make_closing_events(entry.info, entry.parts, _INTERRUPTED_ANSWER_ERROR)
    events += [
        # Nobody waits for these answers any more: an open question would be shown for ever.
        PermissionReplied(
            properties=PermissionAnswer(
                session_id=session_id, request_id=request.id, reply="reject"
            )
        )
        for request in store.list_pending_permissions(session_id)
    ]
    events += [
        QuestionRejected(properties=QuestionRefusal(session_id=session_id, request_id=request.id))
        for request in store.list_pending_questions(session_id)
    ]
    fault_injection.pass_point("recover")
    store.append(*events)


def make_closing_events(
    info: AssistantMessage, parts: tuple[Part, ...], error: MessageError
) -> list[StoredEvent]:
    """Return the events that close an answer: calls as interrupted, text as it stands,
    the answer with the error.
    """
    now = now_ms()
    events: list[StoredEvent] = [
        make_part_updated(mark_interrupted(call, now)) for call in list_open_calls(parts)
    ]
    events += [
        make_part_updated(replace(part, time=Span(start=part.time.start, end=now)))
        for part in parts
        if isinstance(part, TextPart | ReasoningPart)
        and part.time is not None
        and part.time.end is None
    ]
    # The clock may have been set back since: an answer must not end before it began.
    time = replace(info.time, completed=info.time.completed or max(now, info.time.created))
    events.append(make_message_updated(replace(info, time=time, error=info.error or error)))
    return events


def mark_interrupted(call: ToolPart, now: int, reason: str = INTERRUPTED_ERROR) -> ToolPart:
    """Return the call as interrupted at `now` (ms since the epoch),
    with the progress that it had reported.

    `reason`: the error of a call that had started; one that had not gets `NOT_STARTED_ERROR`.
    """
    metadata = {"interrupted": True}
    start, why = now, NOT_STARTED_ERROR
    match call.state:
        case ToolStateRunning(time=time, metadata=progress):
            metadata = {**(progress or {}), **metadata}
            start, why = time.start, reason
            # A call that waited for permission (`NOT_ALLOWED_ERROR`) has done nothing:
            # there is nothing to check.
            metadata |= {ADVICE_KEY: CHECK_FIRST_ADVICE} if reason == INTERRUPTED_ERROR else {}
        case _:
            pass
    state = ToolStateError(
        input=call.state.input,
        error=why,
        metadata=metadata,
        time=ToolTime(start=start, end=max(now, start)),
    )
    return replace(call, state=state)


def list_open_calls(parts: tuple[Part, ...]) -> list[ToolPart]:
    """Return the tool calls that have no result."""
    return [
        p
        for p in parts
        if isinstance(p, ToolPart) and isinstance(p.state, ToolStatePending | ToolStateRunning)
    ]
