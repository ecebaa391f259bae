"""Finds what a turn did to the project, for its end: changed files, moved references,
lost work of the user's, checks.

An answer may say anything; this is what snapshots and the repository show.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from codeloop.agent.answer.turn_diffs import add_subagents, find_step_changes, join_changes
from codeloop.agent.engine import Engine
from codeloop.agent.moves import REJECTED_KEY
from codeloop.schema.event import make_message_updated
from codeloop.schema.limits import SNAPSHOT_COMPARE
from codeloop.schema.message import AssistantMessage
from codeloop.schema.part import Part, PatchPart, ToolPart, ToolStateCompleted, ToolStateError
from codeloop.schema.turn_facts import CheckState, TurnFacts
from codeloop.schema.wire import JSON, replace
from codeloop.store.conversation import Entry
from codeloop.tool.tool import EDIT_TOOLS
from codeloop.workspace.snapshot.file_jobs import JobFailure
from codeloop.workspace.snapshot.snapshots import Snapshots
from codeloop.workspace.snapshot.stored_trees import TreeChange, make_file_diffs

if TYPE_CHECKING:
    from codeloop.workspace.git.ref_state import RefState

# Lost files that are named; more of them in one folder are named by it.
_MAX_NAMED = 5
# Changes by commands that are looked at for lost work.
_MAX_CHANGES = 2_000


async def collect_facts(
    engine: Engine, session_id: str, turn: Sequence[Entry], earlier: Sequence[Entry], answer: str
) -> TurnFacts:
    """Return the facts of a turn. `earlier`: the entries before it. `answer`: its last text."""
    entries = add_subagents(engine, session_id, turn)
    parts = [part for entry in entries for part in entry.parts]
    start = engine.services.ref_states.pop(session_id, None)
    git: tuple[str, ...] = ()
    states: list[RefState] = []
    if start is not None and not engine.workspace.ground.find_loss():
        from codeloop.workspace.git.ref_state import describe_ref_changes, read_ref_state

        end = read_ref_state(engine.workspace.root)
        git = describe_ref_changes(start, end)
        states = [start, *([end] if end is not None else [])]
    checks = _judge_checks(parts, str(engine.workspace.directory))
    earlier_parts = [part for entry in earlier for part in entry.parts]
    claims = _list_false_claims(parts, earlier_parts, str(engine.workspace.directory), answer)
    keeps_todos = any(isinstance(part, ToolPart) and part.tool == "todowrite" for part in parts)
    todos = engine.store.list_todos(session_id) if keeps_todos else []
    facts = TurnFacts(
        files=0,
        additions=0,
        deletions=0,
        checks=checks,
        git=git,
        false_claims=claims,
        open_todos=sum(todo.status in {"pending", "in_progress"} for todo in todos),
    )
    snapshots = engine.snapshots
    if snapshots is None or not any(isinstance(part, PatchPart) for part in parts):
        has_commands = any(
            isinstance(part, ToolPart) and part.tool == "bash" and _may_have_run(part)
            for part in parts
        )
        is_known = snapshots is not None and snapshots.last is not None
        unknown = (
            ()
            if is_known or not has_commands
            else ("what commands changed, as there are no snapshots",)
        )
        return replace(facts, files=len(_list_edited(parts)), unrecorded=unknown)
    # What the model wrote in earlier turns is not the user's own work.
    patches = (part for part in earlier_parts if isinstance(part, PatchPart))
    names = {file.removeprefix(f"{snapshots.root}/") for part in patches for file in part.files}
    compared = await snapshots.jobs.run_job(
        lambda: _compare(snapshots, entries, states, names), SNAPSHOT_COMPARE
    )
    if isinstance(compared, JobFailure):
        return replace(
            facts, unrecorded=(f"it is not known which files changed: {compared.reason}",)
        )
    return replace(
        compared,
        checks=facts.checks,
        git=facts.git,
        false_claims=claims,
        open_todos=facts.open_todos,
        lost_files=tuple(_name_some(compared.lost_files)),
    )


def _may_have_run(part: ToolPart) -> bool:
    """Return whether a call may have been run: the user or a rule may have refused it."""
    metadata = part.state.metadata if isinstance(part.state, ToolStateError) else None
    return not {REJECTED_KEY, "denied"} & (metadata or {}).keys()


def store_facts(engine: Engine, turn: Sequence[Entry], facts: TurnFacts) -> None:
    """Store the facts with the last step of a turn, where every client finds them."""
    last = next(
        (entry.info for entry in reversed(turn) if isinstance(entry.info, AssistantMessage)), None
    )
    if last is not None:
        engine.store.append(make_message_updated(replace(last, facts=facts)))


def _compare(
    snapshots: Snapshots,
    entries: Sequence[Entry],
    states: "Sequence[RefState]",
    own_files: Collection[str],
) -> TurnFacts:
    """Return the changes of files between the start of a turn and its end, with all lost files.
    Blocks.
    """
    snapshots.objects.create_if_missing()
    steps = [
        step for entry in entries if (step := find_step_changes(snapshots, entry, -1)) is not None
    ]
    changes = join_changes(change for step in steps for change in step.changes)
    diffs = make_file_diffs(snapshots.objects, changes)
    lost = _find_lost_files(changes, states, own_files) if states else []
    return TurnFacts(
        files=len(diffs),
        additions=sum(diff.additions for diff in diffs),
        deletions=sum(diff.deletions for diff in diffs),
        checks="none",
        lost_files=tuple(lost),
        lost_count=len(lost),
        unrecorded=tuple(sorted({path for step in steps for path in step.unrecorded if path})),
    )


def _find_lost_files(
    changes: Sequence[TreeChange], states: "Sequence[RefState]", own_files: Collection[str]
) -> list[str]:
    """Return the files whose uncommitted content is gone: removed,
    or put back to what a commit has.

    `states`: before the turn, and after it.
    """
    from codeloop.workspace.git.objects import GitObjects

    objects = GitObjects(states[0].common)
    trees = [objects.read_tree_id(state.commit) if state.commit else b"" for state in states]
    if any(tree is None for tree in trees):
        return []
    # A file that was moved is not lost.
    kept = {change.after.blob for change in changes if change.after is not None}
    lost: list[str] = []
    for change in changes[:_MAX_CHANGES]:
        if change.before is None or change.path in own_files:
            continue
        committed = [objects.find_entry(tree, change.path) if tree else None for tree in trees]
        blobs = [entry.object_id.hex() if entry is not None else "" for entry in committed]
        is_gone = (
            change.before.blob not in kept if change.after is None else change.after.blob in blobs
        )
        if is_gone and change.before.blob not in blobs:
            lost.append(change.path)
    return lost


def _name_some(files: Sequence[str]) -> list[str]:
    """Return the names of files; where there are more than a few, those of their folders."""
    if len(files) <= _MAX_NAMED:
        return [*files]
    return [
        *dict.fromkeys(f"{file.partition('/')[0]}/" if "/" in file else file for file in files)
    ][:_MAX_NAMED]


def _list_edited(parts: Iterable[Part]) -> set[str]:
    """Return the files that calls of editing tools have changed, as these named them."""
    files: set[str] = set()
    for part in parts:
        if (
            isinstance(part, ToolPart)
            and part.tool in EDIT_TOOLS
            and isinstance(part.state, ToolStateCompleted)
        ):
            described: list[JSON] = part.state.metadata.get("files") or []
            names = [str(file.get("relativePath")) for file in described] or [part.state.title]
            files |= set(names)
    return files


def _judge_checks(parts: Iterable[Part], root: str) -> CheckState:
    """Return how the checks of a turn stand; `none`: it ran none."""
    if not any(isinstance(part, ToolPart) and part.tool == "bash" for part in parts):
        return "none"
    from codeloop.agent.checks.check_problems import describe_state

    return describe_state(parts, root)


def _list_false_claims(
    parts: Sequence[Part], earlier: Sequence[Part], root: str, answer: str
) -> tuple[str, ...]:
    from codeloop.agent.checks.unfinished import list_contradictions

    return list_contradictions(parts, earlier, root, answer)
