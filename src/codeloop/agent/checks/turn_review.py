"""Reviews a turn: which tests it changed and which checks it ran, by its calls,
its subagents' calls and snapshots.
"""

import asyncio
import re
from collections.abc import Sequence

from msgspec import Struct, structs

from codeloop.agent.answer.turn_diffs import add_subagents, compare_turn
from codeloop.agent.checks.call_diffs import has_moved_commit, list_call_diffs
from codeloop.agent.checks.changed_tests import (
    ChangedTest,
    find_exported_options,
    find_test_changes,
)
from codeloop.agent.checks.check_runs import list_checks, read_failures
from codeloop.agent.checks.file_kinds import CODE_FILE, is_check_file
from codeloop.agent.engine import Engine
from codeloop.schema.message import SnapshotFileDiff
from codeloop.schema.part import Part, PatchPart, ToolPart, ToolStateCompleted
from codeloop.store.conversation import Entry
from codeloop.tool.tool import EDIT_TOOLS
from codeloop.workspace.project_checks import has_runnable_check
from codeloop.workspace.snapshot.file_jobs import JobFailure

# Changes of tests that a result names; it counts the others.
_MAX_NAMED = 20


class TurnReview(Struct, frozen=True):
    """The parts of a turn with those of its subagents, oldest first,
    and the changes of tests that existed before.

    `unknown_reason`: why the changes are not known, as a clause; "": they are known.
    """

    parts: Sequence[Part]
    test_changes: Sequence[ChangedTest] = ()
    unknown_reason: str = ""

    def describe_changes(self) -> tuple[str, ...]:
        """Return the changes of tests for the result, a phrase each."""
        phrases = [str(change) for change in self.test_changes[:_MAX_NAMED]]
        unnamed_count = len(self.test_changes) - len(phrases)
        if unnamed_count:
            phrases.append(f"{unnamed_count} more")
        if self.unknown_reason:
            phrases.append(f"it is not known which test files changed: {self.unknown_reason}")
        return tuple(phrases)


async def review_turn(engine: Engine, session_id: str, turn: Sequence[Entry]) -> TurnReview:
    """Review a turn. Files are read only if the turn changed files of tests
    or settings of checks.
    """
    entries = add_subagents(engine, session_id, turn)
    parts = [part for entry in entries for part in entry.parts]
    diffs = await _list_diffs(engine, entries, parts)
    if isinstance(diffs, JobFailure):
        return TurnReview(parts, unknown_reason=diffs.reason)
    commands = [
        str(part.state.input.get("command"))
        for part, _ in _list_calls(parts)
        if part.tool == "bash"
    ]
    changes = find_test_changes(diffs, read_failures(parts))
    if has_moved_commit(commands):
        changes = [structs.replace(change, needs_reason=False) for change in changes]
    return TurnReview(parts, [*changes, *find_exported_options(commands)])


async def has_unchecked_edits(engine: Engine, review: TurnReview) -> bool:
    """Return whether a turn changed code and ran no check,
    although the project has one that can be run.
    """
    files = [file for part in review.parts if isinstance(part, PatchPart) for file in part.files]
    files += [
        str(part.state.input.get("filePath"))
        for part, _ in _list_calls(review.parts)
        if part.tool in EDIT_TOOLS
    ]
    workspace = engine.workspace
    if not any(re.fullmatch(CODE_FILE, file) for file in files) or list_checks(
        review.parts, str(workspace.directory)
    ):
        return False
    return await asyncio.to_thread(
        has_runnable_check, workspace.root, workspace.directory, workspace.environment
    )


async def _list_diffs(
    engine: Engine, entries: Sequence[Entry], parts: Sequence[Part]
) -> Sequence[SnapshotFileDiff] | JobFailure:
    """Return the changes of files of tests and settings: from snapshots,
    else as far as the calls show them.
    """
    snapshots = engine.snapshots
    files = [file for part in parts if isinstance(part, PatchPart) for file in part.files]
    if snapshots is None or (not files and snapshots.last is None):
        return list_call_diffs(_list_calls(parts))
    if not any(is_check_file(file.removeprefix(f"{snapshots.root}/")) for file in files):
        return ()
    return await compare_turn(snapshots, entries, is_wanted=is_check_file)


def _list_calls(parts: Sequence[Part]) -> list[tuple[ToolPart, ToolStateCompleted]]:
    """Return the completed calls of commands and edits."""
    return [
        (part, part.state)
        for part in parts
        if isinstance(part, ToolPart)
        and isinstance(part.state, ToolStateCompleted)
        and (part.tool == "bash" or part.tool in EDIT_TOOLS)
    ]
