"""The file changes of steps and turns: computed from the snapshots around each step, stored with the prompt.

Also finds the entries of a session and its subagents that an undo takes back.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from codeloop.agent.engine import Engine
from codeloop.schema.event import StoredEvent, make_message_updated, make_session_updated
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import SNAPSHOT_COMPARE, SNAPSHOT_TIME, Limit
from codeloop.schema.message import (
    AssistantMessage,
    Message,
    Session,
    SessionSummary,
    SnapshotFileDiff,
    UserMessage,
    UserSummary,
)
from codeloop.schema.part import PatchPart, StepFinishPart
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry
from codeloop.store.store import Store
from codeloop.workspace.snapshot.file_jobs import JobFailure
from codeloop.workspace.snapshot.object_store import MissingObject, ObjectStore
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.tree_diff import TreeChange, list_differences, make_file_diffs

MAX_SUBAGENTS = 1_000
"""Subagents of one session whose changes are included."""


class MessageChanges(Struct, frozen=True):
    """The changes of one message: `index` is its position in the conversation.

    `missing`: files whose content is no longer stored.
    `outside`: absolute paths below another work tree, where the message was copied from.
    """

    index: int
    changes: tuple[TreeChange, ...]
    missing: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


def find_step_changes(snapshots: Snapshots, entry: Entry, index: int) -> MessageChanges | None:
    """Return the changes of one message: the files of its patch part, from the two trees around it. Reads the disk."""
    patches = [part for part in entry.parts if isinstance(part, PatchPart)]
    after = next((part.snapshot for part in entry.parts if isinstance(part, StepFinishPart) and part.snapshot), None)
    if not patches or after is None:
        return None
    root = f"{snapshots.root}/"
    files = {file for part in patches for file in part.files}
    names = {file.removeprefix(root) for file in files if file.startswith(root)}
    if files and not names:
        return MessageChanges(index, (), outside=tuple(sorted(files)))
    try:
        tree_changes = _find_changes(snapshots.objects, patches[0].hash, after, names)
    except MissingObject:
        return MessageChanges(index, (), tuple(sorted(names)))
    return MessageChanges(index, tree_changes)


def list_positioned_entries(store: Store, conversation: Conversation) -> list[tuple[int, Entry]]:
    """Return the messages of a session and its subagents, each with the index of its message in the session.

    A subagent's message gets the index of the message that was the session's latest when it began. Oldest first, undone
    ones included.
    """
    starts = [entry.info.time.created for entry in conversation.entries]
    entries = sorted(list_subagent_entries(store, conversation.session.id), key=lambda entry: entry.info.time.created)
    positions = [(max(bisect_right(starts, entry.info.time.created) - 1, 0), entry) for entry in entries]
    return sorted((*enumerate(conversation.entries), *positions), key=lambda each: each[0])


def list_subagent_entries(store: Store, session_id: str) -> Iterator[Entry]:
    """Yield the messages of all subagents below a session, without undone ones."""
    waiting = [session_id]
    while waiting:
        for child in store.list_sessions(parent=waiting.pop(), limit=MAX_SUBAGENTS):
            conversation, waiting = store.read_conversation(child.id), [*waiting, child.id]
            point = conversation.session.revert
            yield from conversation.entries[
                : find_undo_start(conversation, point.message_id, point.part_id) if point is not None else None
            ]


def find_undo_start(conversation: Conversation, message_id: str, part_id: str | None) -> int | None:
    """Return the index of the first undone entry: a user message, or the step that holds the part."""
    index = _find_index(conversation.entries, message_id)
    if index is None:
        return None
    info = conversation.entries[index].info
    if isinstance(info, UserMessage) or (part_id and _has_part(conversation.entries[index], part_id)):
        return index
    return _find_index(conversation.entries, info.parent_id)


def _find_index(entries: Sequence[Entry], message_id: str) -> int | None:
    return next((index for index, entry in enumerate(entries) if entry.info.id == message_id), None)


def _has_part(entry: Entry, part_id: str) -> bool:
    return any(part.id == part_id for part in entry.parts)


def _find_changes(objects: ObjectStore, before: str, after: str, names: set[str]) -> tuple[TreeChange, ...]:
    return tuple(each for each in list_differences(objects, before, after) if each.path in names)


async def compare_turn(
    snapshots: Snapshots,
    entries: Sequence[Entry],
    limit: Limit = SNAPSHOT_COMPARE,
    *,
    is_wanted: Callable[[str], bool] | None = None,
) -> tuple[SnapshotFileDiff, ...] | JobFailure:
    """Return how the files that the steps of a turn changed differ between its start and its end.

    `is_wanted`: picks files by their name relative to the work tree; None: all.
    """
    changed_entries = [entry for entry in entries if any(isinstance(part, PatchPart) for part in entry.parts)]
    if not changed_entries:
        return ()

    def compare() -> tuple[SnapshotFileDiff, ...]:
        snapshots.objects.create_if_missing()
        steps = [step for entry in changed_entries if (step := find_step_changes(snapshots, entry, 0)) is not None]
        changes = (change for step in steps for change in step.changes if is_wanted is None or is_wanted(change.path))
        return make_file_diffs(snapshots.objects, join_changes(changes))

    return await snapshots.jobs.run_job(compare, limit)


def join_changes(changes: Iterable[TreeChange]) -> list[TreeChange]:
    """Join the changes (oldest first) of each file into one; none for a file that is as before."""
    tree_changes: dict[str, TreeChange] = {}
    for each in changes:
        tree_changes[each.path] = TreeChange(each.path, tree_changes.get(each.path, each).before, each.after)
    return [
        tree_changes[path] for path in sorted(tree_changes) if tree_changes[path].before != tree_changes[path].after
    ]


async def store_diffs(engine: Engine, session_id: str) -> None:
    """Store the diffs of each newly answered prompt's turn, and the session's sums."""
    snapshots = engine.snapshots
    if snapshots is None:
        return
    conversation = engine.store.read_context(session_id)
    missing = _list_prompts_without_diffs(conversation)
    positions = list_positioned_entries(engine.store, conversation) if missing else []
    for prompt, answers in missing:
        steps = [entry for at, entry in positions if conversation.entries[at].info.id in answers]
        # With the short limit: an abort waits for this comparison.
        diffs = await compare_turn(snapshots, steps, SNAPSHOT_TIME)
        if not isinstance(diffs, JobFailure):
            engine.store.append(*_make_diff_events(engine.store.read_context(session_id), prompt, list(diffs)))


def _list_prompts_without_diffs(conversation: Conversation) -> list[tuple[str, set[str]]]:
    """Return the ids of the answered prompts without diffs, each with those of its answers."""
    answers: dict[str, set[str]] = {}
    prompts: list[tuple[str, set[str]]] = []
    for entry in reversed(conversation.entries):
        if isinstance(entry.info, AssistantMessage):
            answers.setdefault(entry.info.parent_id, set()).add(entry.info.id)
        # Earlier prompts were handled before this one.
        elif entry.info.summary is not None:
            break
        elif entry.info.id in answers:
            prompts.append((entry.info.id, answers[entry.info.id]))
    return prompts[::-1]


def _make_diff_events(conversation: Conversation, prompt: str, diffs: list[SnapshotFileDiff]) -> list[StoredEvent]:
    """Return the events that store a turn's diffs; none when its prompt is gone."""
    prompts = [entry.info for entry in conversation.entries if isinstance(entry.info, UserMessage)]
    message = next((info for info in reversed(prompts) if info.id == prompt), None)
    if message is None:
        return []
    session = conversation.session
    changed_message = replace(message, summary=UserSummary(diffs=diffs))
    events: list[StoredEvent] = [make_message_updated(changed_message)]
    if diffs:
        other_files = list_files(info for info in prompts if info.id != prompt)
        info = replace(add_diffs(session, diffs, other_files), time=replace(session.time, updated=now_ms()))
        events.append(make_session_updated(info))
    return events


def add_diffs(session: Session, diffs: Iterable[SnapshotFileDiff], other_files: set[str], times: int = 1) -> Session:
    """Return the session with a turn's diffs added to its sums; `other_files`: files that other turns changed.

    `times`: 1 adds, -1 subtracts; no sum falls below 0.
    """
    before = session.summary or SessionSummary(additions=0, deletions=0, files=0)
    diffs = list(diffs)
    new = {each.file for each in diffs if each.file is not None} - other_files
    summary = SessionSummary(
        additions=max(before.additions + times * sum(each.additions for each in diffs), 0),
        deletions=max(before.deletions + times * sum(each.deletions for each in diffs), 0),
        files=max(before.files + times * len(new), 0),
    )
    return replace(session, summary=summary)


def list_files(messages: Iterable[Message]) -> set[str]:
    """Return the names of the files that the turns of some prompts changed."""
    return {each.file for info in messages for each in list_diffs(info) if each.file is not None}


def list_diffs(info: Message) -> list[SnapshotFileDiff]:
    """Return the changes of a prompt's turn as they are stored with it."""
    return info.summary.diffs if isinstance(info, UserMessage) and info.summary is not None else []
