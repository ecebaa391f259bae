"""The file changes of steps and turns: computed from the snapshots around each step,
stored with the prompt.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from codeloop.agent.engine import Engine
from codeloop.kit.text.undecodable import escape_undecodable
from codeloop.schema.event import StoredEvent, make_message_updated, make_session_updated
from codeloop.schema.ids import now_ms
from codeloop.schema.limits import SNAPSHOT_COMPARE
from codeloop.schema.message import (
    AssistantMessage,
    Message,
    Session,
    SessionSummary,
    SnapshotFileDiff,
    UserMessage,
    UserSummary,
)
from codeloop.schema.part import PatchPart, StepFinishPart, ToolPart
from codeloop.schema.wire import replace
from codeloop.store.conversation import Conversation, Entry
from codeloop.store.subagents import list_positioned_entries, list_subagent_entries
from codeloop.workspace.snapshot.file_jobs import JobFailure
from codeloop.workspace.snapshot.object_store import MissingObject, ObjectStore
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.stored_trees import TreeChange, list_differences, make_file_diffs


class MessageChanges(Struct, frozen=True):
    """The changes of one message. `index`: its position in the conversation.

    `missing`: files whose content is no longer stored.
    `outside`: absolute paths of files in another work tree, where the message was copied from.
    `unrecorded`: as of `StepFinishPart`.
    """

    index: int
    changes: tuple[TreeChange, ...]
    missing: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    unrecorded: Mapping[str, str] = {}


def find_step_changes(snapshots: Snapshots, entry: Entry, index: int) -> MessageChanges | None:
    """Return the changes of one message's files, from the snapshots before and after it;
    None: it changed none.

    Reads the disk. `index`: as in `MessageChanges`.
    """
    patches = [part for part in entry.parts if isinstance(part, PatchPart)]
    finishes = [part for part in entry.parts if isinstance(part, StepFinishPart)]
    after = next((part.snapshot for part in finishes if part.snapshot), None)
    unrecorded = {
        path: reason for part in finishes for path, reason in (part.unrecorded or {}).items()
    }
    if not patches or after is None:
        return MessageChanges(index, (), unrecorded=unrecorded) if unrecorded else None
    root = escape_undecodable(f"{snapshots.root}/")
    files = {file for part in patches for file in part.files}
    names = {file.removeprefix(root) for file in files if file.startswith(root)}
    if files and not names:
        return MessageChanges(index, (), outside=tuple(sorted(files)))
    try:
        tree_changes = _find_changes(snapshots.objects, patches[0].hash, after, names)
    except MissingObject:
        return MessageChanges(index, (), tuple(sorted(names)), unrecorded=unrecorded)
    return MessageChanges(index, tree_changes, unrecorded=unrecorded)


def _find_changes(
    objects: ObjectStore, before: str, after: str, names: set[str]
) -> tuple[TreeChange, ...]:
    # Parts hold names as they can be stored.
    return tuple(
        each
        for each in list_differences(objects, before, after)
        if escape_undecodable(each.path) in names
    )


async def compare_turn(
    snapshots: Snapshots,
    entries: Sequence[Entry],
    *,
    is_wanted: Callable[[str], bool] | None = None,
) -> tuple[SnapshotFileDiff, ...] | JobFailure:
    """Return how the files that the steps of a turn changed differ between its start and its end.

    `is_wanted`: picks files by their name relative to the work tree; None: all.
    """
    changed_entries = [
        entry for entry in entries if any(isinstance(part, PatchPart) for part in entry.parts)
    ]
    if not changed_entries:
        return ()

    def compare() -> tuple[SnapshotFileDiff, ...]:
        snapshots.objects.create_if_missing()
        # The position of an entry in its conversation does not matter here.
        steps = [
            step
            for entry in changed_entries
            if (step := find_step_changes(snapshots, entry, -1)) is not None
        ]
        changes = (
            change
            for step in steps
            for change in step.changes
            if is_wanted is None or is_wanted(change.path)
        )
        return make_file_diffs(snapshots.objects, join_changes(changes))

    return await snapshots.jobs.run_job(compare, SNAPSHOT_COMPARE)


def add_subagents(engine: Engine, session_id: str, turn: Sequence[Entry]) -> list[Entry]:
    """Return the entries of a turn with those of its subagents, oldest first."""
    if not any(
        isinstance(part, ToolPart) and part.tool == "task" for entry in turn for part in entry.parts
    ):
        return [*turn]
    began_at = turn[0].info.time.created
    subagent_entries = [
        entry
        for entry in list_subagent_entries(engine.store, session_id)
        if entry.info.time.created >= began_at
    ]
    return sorted((*turn, *subagent_entries), key=lambda entry: entry.info.time.created)


def join_changes(changes: Iterable[TreeChange]) -> list[TreeChange]:
    """Join the changes (oldest first) of each file into one; none for a file that is as before."""
    tree_changes: dict[str, TreeChange] = {}
    for each in changes:
        tree_changes[each.path] = TreeChange(
            each.path, tree_changes.get(each.path, each).before, each.after
        )
    return [
        tree_changes[path]
        for path in sorted(tree_changes)
        if tree_changes[path].before != tree_changes[path].after
    ]


async def store_diffs(engine: Engine, session_id: str) -> None:
    """Store the diffs of each newly answered prompt's turn, and the session's sums."""
    snapshots = engine.snapshots
    if snapshots is None:
        return
    conversation = engine.store.read_context(session_id)
    missing = _list_prompts_without_diffs(conversation)
    if not missing:
        return
    positions = list_positioned_entries(engine.store, conversation)
    for prompt_id, answer_ids in missing:
        steps = [
            entry for index, entry in positions if conversation.entries[index].info.id in answer_ids
        ]
        diffs = await compare_turn(snapshots, steps)
        if not isinstance(diffs, JobFailure):
            engine.store.append(
                *_make_diff_events(engine.store.read_context(session_id), prompt_id, list(diffs))
            )


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


def _make_diff_events(
    conversation: Conversation, prompt_id: str, diffs: list[SnapshotFileDiff]
) -> list[StoredEvent]:
    """Return the events that store a turn's diffs; none when its prompt is gone."""
    prompts = [entry.info for entry in conversation.entries if isinstance(entry.info, UserMessage)]
    message = next((info for info in reversed(prompts) if info.id == prompt_id), None)
    if message is None:
        return []
    session = conversation.session
    changed_message = replace(message, summary=UserSummary(diffs=diffs))
    events: list[StoredEvent] = [make_message_updated(changed_message)]
    if diffs:
        other_files = list_files(info for info in prompts if info.id != prompt_id)
        info = replace(
            add_diffs(session, diffs, other_files), time=replace(session.time, updated=now_ms())
        )
        events.append(make_session_updated(info))
    return events


def add_diffs(
    session: Session, diffs: Iterable[SnapshotFileDiff], other_files: set[str], times: int = 1
) -> Session:
    """Return the session with a turn's diffs added to its sums. No sum falls below 0.

    `other_files`: files that other turns changed, which are counted already.
    `times`: 1 adds, -1 subtracts.
    """
    before = session.summary or SessionSummary(additions=0, deletions=0, files=0)
    diffs = list(diffs)
    files = {each.file for each in diffs if each.file is not None} - other_files
    summary = SessionSummary(
        additions=max(before.additions + times * sum(each.additions for each in diffs), 0),
        deletions=max(before.deletions + times * sum(each.deletions for each in diffs), 0),
        files=max(before.files + times * len(files), 0),
    )
    return replace(session, summary=summary)


def list_files(messages: Iterable[Message]) -> set[str]:
    """Return the names of the files that the turns of these prompts changed;
    other messages are ignored.
    """
    return {each.file for info in messages for each in list_diffs(info) if each.file is not None}


def list_diffs(info: Message) -> list[SnapshotFileDiff]:
    """Return the diffs of a prompt's turn that are stored with it; empty for other messages."""
    return info.summary.diffs if isinstance(info, UserMessage) and info.summary is not None else []
