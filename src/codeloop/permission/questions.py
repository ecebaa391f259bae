"""Questions to the user: asks one and waits for its answer,
and settles those that an answer is for.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from codeloop.permission.grants import is_covered_by_always
from codeloop.schema.errors import GapError
from codeloop.schema.event import (
    PermissionAnswer,
    PermissionAsked,
    PermissionReplied,
    SessionDeleted,
    StampedEvent,
    StoredEvent,
)
from codeloop.schema.permission import PermissionRequest
from codeloop.schema.wire import replace
from codeloop.store.store import Store


async def ask_user(store: Store, request: PermissionRequest) -> PermissionAnswer:
    """Ask the user a question, and wait for the answer; a question that is
    no longer waited for is withdrawn.
    """
    seq = store.append(PermissionAsked(properties=request))
    try:
        while True:
            try:
                return await _wait_for_answer(store, request, seq)
            except GapError:
                # The answer may be among the events that are gone;
                # unknown, it does not count as a yes.
                seq = store.read_last_seq()
                if not _is_pending(store, request):
                    return _make_rejection(request)
    finally:
        # Still pending: the turn was cancelled, and no client should show
        # the question any more.
        if _is_pending(store, request):
            store.append(PermissionReplied(properties=_make_rejection(request)))


def _is_pending(store: Store, request: PermissionRequest) -> bool:
    return any(
        pending.id == request.id for pending in store.list_pending_permissions(request.session_id)
    )


async def _wait_for_answer(
    store: Store, request: PermissionRequest, after: int
) -> PermissionAnswer:
    """Wait for the answer among the events after the question.
    Raises GapError when they are no longer kept.
    """
    stream = store.follow(after, session=request.session_id)
    try:
        async for event in stream:
            match event.event:
                case PermissionReplied(properties=answer) if answer.request_id == request.id:
                    return answer
                case SessionDeleted(properties=session_info) if (
                    session_info.session_id == request.session_id
                ):
                    return _make_rejection(request)
                case _:
                    pass
    finally:
        await _close(stream)
    # The stream ends without an answer when the store is closed.
    return _make_rejection(request)


async def _close(stream: AsyncIterator[StampedEvent]) -> None:
    # Leaving `async for` does not close a generator, and the store would go on filling its queue.
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()


def _make_rejection(request: PermissionRequest) -> PermissionAnswer:
    return PermissionAnswer(session_id=request.session_id, request_id=request.id, reply="reject")


def settle_question(store: Store, answer: PermissionAnswer, always: Sequence[str] = ()) -> bool:
    """Settle a question, and the others that the answer covers, in one transaction;
    return whether it still waited.

    "always" also allows every other question of the session and of its children that is covered
    by the patterns of `always`, or else by those of the question; for the scope "session" the
    session is the outermost one, which the user sees. "reject" without a message ends the turn,
    so it also rejects all other questions of the session.
    """
    pending = store.list_pending_permissions()
    answered_request = next(
        (request for request in pending if request.id == answer.request_id), None
    )
    if answered_request is None:
        return False
    answered_request = (
        replace(answered_request, always=list(always)) if always else answered_request
    )
    answer = replace(answer, session_id=answered_request.session_id)
    # A subagent's question is one of the session that the user works in.
    is_for_session = answer.reply == "always" and answer.scope == "session"
    lineage = [each.id for each in store.walk_ancestors(answer.session_id)]
    holder = lineage[-1] if is_for_session and lineage else answer.session_id
    others = [
        other
        for other in pending
        if other.id != answered_request.id
        and _is_settled_by(store, other, answered_request, answer, holder)
    ]
    replies = (
        PermissionReplied(properties=answer),
        *(_copy_reply(other, answer) for other in others),
    )

    def make_events() -> Sequence[StoredEvent]:
        # Within the transaction: after a crash there is neither a grant without its
        # answer nor the reverse.
        if is_for_session:
            store.permissions.store_session_answer(answered_request, holder)
        elif answer.reply == "always":
            store.permissions.store_always_answer(answered_request)
        return replies

    store.append_made_events(make_events)
    return True


def _is_settled_by(
    store: Store,
    other: PermissionRequest,
    request: PermissionRequest,
    answer: PermissionAnswer,
    holder: str,
) -> bool:
    """Return whether the answer to one question (`request`) settles another question too.

    `holder`: the session for which an "always" holds, with its subagents.
    """
    match answer.reply:
        case "once":
            return False
        case "reject":
            return not answer.message and other.session_id == request.session_id
        case "always":
            return is_covered_by_always(request, other) and _is_within(
                store, other.session_id, holder
            )


def _is_within(store: Store, session_id: str, ancestor: str) -> bool:
    return session_id == ancestor or any(
        each.id == ancestor for each in store.walk_ancestors(session_id)
    )


def _copy_reply(request: PermissionRequest, answer: PermissionAnswer) -> PermissionReplied:
    return PermissionReplied(
        properties=replace(
            answer, session_id=request.session_id, request_id=request.id, message=None
        )
    )
