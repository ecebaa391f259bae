"""Subagents as they are stored: their messages, reports on their work,
and the state of each in its session's metadata.

A state that is read is corrected by what runs now.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

import msgspec

from codeloop.schema.ids import now_ms
from codeloop.schema.message import Session, UserMessage
from codeloop.schema.part import PatchPart, TextPart, ToolPart, ToolStateCompleted
from codeloop.schema.wire import Wire, replace
from codeloop.store.conversation import Conversation, Entry, find_last_text, find_undo_start
from codeloop.store.store import Store

SubagentStatus = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
"""`queued`: it runs when one of the others has ended. `waiting`: for the user's answer;
it is never stored.
"""
_MAX_FILES = 40
"""The number of changed files that a report lists by name."""
STATE_KEY = "task"
"""The key in a session's metadata for the subagent's state."""


class SubagentState(Wire):
    """The state that a subagent has since `time` (ms since the epoch);
    `reason`: why it failed or was cancelled.

    `background`: whether the call that started it does not wait for it.
    """

    state: SubagentStatus
    background: bool
    time: int
    reason: str | None = None


def store_subagent_state(
    store: Store,
    session_id: str,
    state: SubagentStatus,
    *,
    background: bool,
    reason: str | None = None,
) -> None:
    """Store a subagent's state, if its session still exists;
    clients see it in the session's metadata.
    """
    if store.find_session(session_id) is None:
        return
    stored_state = SubagentState(state=state, background=background, time=now_ms(), reason=reason)
    metadata = {STATE_KEY: msgspec.to_builtins(stored_state)}
    store.update_session(
        session_id,
        lambda session: replace(session, metadata={**(session.metadata or {}), **metadata}),
    )


def read_subagent_state(store: Store, session: Session) -> SubagentState | None:
    """Return the state of a subagent; None: none is stored in its session.

    If its process ended while it worked, the state is cancelled;
    if it has an open question, waiting.
    """
    try:
        stored_state = msgspec.convert((session.metadata or {}).get(STATE_KEY), SubagentState)
    except msgspec.ValidationError:
        return None
    if stored_state.state in {"queued", "running"} and not store.leases.is_held(session.id):
        return replace(stored_state, state="cancelled", reason="The process that it ran in ended.")
    if stored_state.state == "running" and is_waiting_for_answer(store, session.id):
        return replace(stored_state, state="waiting")
    return stored_state


def is_waiting_for_answer(store: Store, session_id: str) -> bool:
    """Return whether a session waits for the user's answer."""
    return bool(
        store.list_pending_permissions(session_id) or store.list_pending_questions(session_id)
    )


def make_subagent_report(store: Store, session_id: str) -> str:
    """Return a subagent's last answer ("" for none),
    and the files changed since it was last prompted.
    """
    conversation = store.read_conversation(session_id)
    directory_prefix = conversation.session.directory.rstrip("/") + "/"
    files = sorted(
        {file.removeprefix(directory_prefix) for file in _find_changed_files(conversation)}
    )
    rest = f" and {len(files) - _MAX_FILES} more" if len(files) > _MAX_FILES else ""
    changes = f"Files changed: {', '.join(files[:_MAX_FILES])}{rest}" if files else ""
    return "\n\n".join(filter(None, [find_last_text(conversation.entries), changes]))


def _find_changed_files(conversation: Conversation) -> Iterator[str]:
    """Yield the files changed since the last prompt: those of recorded patches and those
    named in results of edits.
    """
    for entry in reversed(conversation.entries):
        for part in entry.parts:
            match part:
                case TextPart(synthetic=None | False) if isinstance(entry.info, UserMessage):
                    return
                case PatchPart(files=files):
                    yield from files
                case ToolPart(state=ToolStateCompleted(metadata={"files": [*changes]})):
                    yield from (change["file"] for change in changes)
                case ToolPart(state=ToolStateCompleted(metadata={"filediff": {"file": str(file)}})):
                    yield file
                case _:
                    pass


MAX_SUBAGENTS = 1_000
"""The most subagents that are included for each session that started some."""


def list_positioned_entries(store: Store, conversation: Conversation) -> list[tuple[int, Entry]]:
    """Return the messages of a session and its subagents,
    each with the index of its message in the session.

    A subagent's message gets the index of the message that was the session's latest when it began.
    Oldest first; undone ones of the session are included, those of subagents are not.
    """
    creation_times = [entry.info.time.created for entry in conversation.entries]
    subagent_entries = sorted(
        list_subagent_entries(store, conversation.session.id),
        key=lambda entry: entry.info.time.created,
    )
    positioned_entries = [
        (max(bisect_right(creation_times, entry.info.time.created) - 1, 0), entry)
        for entry in subagent_entries
    ]
    # The sort is stable, so a message of the session comes before those of its subagents.
    return sorted(
        (*enumerate(conversation.entries), *positioned_entries),
        key=lambda positioned: positioned[0],
    )


def list_subagent_entries(store: Store, session_id: str) -> Iterator[Entry]:
    """Yield the messages of all subagents below a session, without undone ones."""
    waiting = [session_id]
    while waiting:
        for child in store.list_sessions(parent=waiting.pop(), limit=MAX_SUBAGENTS):
            waiting.append(child.id)
            conversation = store.read_conversation(child.id)
            point = conversation.session.revert
            end = (
                find_undo_start(conversation, point.message_id, point.part_id)
                if point is not None
                else None
            )
            yield from conversation.entries[:end]
