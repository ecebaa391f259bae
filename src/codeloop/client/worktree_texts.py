"""Describes work trees for user interfaces: lists, diffs, merges, rebases,
and what a removal would lose.
"""

from codeloop.client.formatting import format_time
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.worktrees import (
    WorktreeDiff,
    WorktreeMerge,
    WorktreeOverview,
)
from codeloop.schema.resources import Worktree

_MAX_LISTED = 5

# By the state of a work tree that is not `ready`.
PROBLEMS_BY_STATE = {
    "unfinished": "making it was cut off; `codeloop worktree remove` clears it away",
    "removing": "removing it was cut off; `codeloop worktree remove` goes on",
    "gone": "its folder is gone; `codeloop worktree remove` forgets it",
}


def describe_opened_worktree(tree: Worktree, *, is_new: bool) -> list[str]:
    """Return lines about an opened work tree: its directory and branch,
    and the files that were not copied into it.
    """
    base = f", from {tree.base[:12] if tree.base else '?'}" if is_new else ""
    lines = [
        f"Work tree {tree.name}{'' if is_new else ' again'}: {tree.directory} (branch {tree.branch}{base})"
    ]
    lines += tree.notes
    if tree.asks:
        files = " ".join(tree.asks[:_MAX_LISTED])
        lines.append(
            f"Not copied, as it may hold secrets: {files}. To copy: codeloop worktree copy {tree.name} {files}"
        )
    return lines


def format_worktree_list(trees: list[WorktreeOverview]) -> list[str]:
    """Format each work tree as a line: its name, when it was created,
    its state and its directory.
    """
    if not trees:
        return ["No work trees. `codeloop --worktree NAME` makes one."]
    name_width = max(len(tree.name) for tree in trees)
    lines: list[str] = []
    for tree in trees:
        state, directory = _describe_state(tree), one_line(tree.directory, 200)
        lines.append(f"{tree.name:{name_width}}  {format_time(tree.created)}  {state}  {directory}")
    return lines


def _describe_state(tree: WorktreeOverview) -> str:
    if tree.state != "ready":
        return PROBLEMS_BY_STATE[tree.state]
    # A base of 40 characters is a commit id, which is shortened; a shorter one is a branch.
    facts = [
        f"from {tree.base}"
        if tree.base and len(tree.base) < 40
        else f"from {(tree.base or '?')[:12]}"
    ]
    facts += [f"{len(tree.changed)} changed"] if tree.changed else []
    facts += [f"{tree.ahead} ahead"] if tree.ahead else []
    facts += [f"{tree.behind} behind"] if tree.behind else []
    facts += [f"{len(tree.running)} running"] if tree.running else []
    facts += [one_line(tree.error, 80)] if tree.error else []
    return ", ".join(facts if len(facts) > 1 else [*facts, "nothing new"])


def list_losses(tree: WorktreeOverview) -> list[str]:
    """List what the removal of a work tree would lose: running turns, uncommitted files,
    commits of no other branch.

    What git has left half done there, or why git fails, is the last line.
    """
    lines: list[str] = []
    if tree.running:
        lines.append(f"{tree.name}: a turn runs in {', '.join(tree.running)}")
    if tree.changed and tree.state == "ready":
        further = (
            f" and {len(tree.changed) - _MAX_LISTED} more"
            if len(tree.changed) > _MAX_LISTED
            else ""
        )
        lines.append(
            f"{tree.name}: not committed: {', '.join(tree.changed[:_MAX_LISTED])}{further}"
        )
    if tree.unmerged and tree.state == "ready":
        lines.append(
            f"{tree.name}: {_format_count(tree.unmerged, 'commit is', 'commits are')} in no other branch, tag or remote"
        )
    return [*lines, *([f"{tree.name}: {tree.error}"] if tree.error else [])]


def describe_removal(tree: WorktreeOverview, *, is_forced: bool) -> list[str]:
    """Return lines about a removed work tree, and the branch that still holds its commits."""
    is_kept = tree.unmerged or (is_forced and tree.changed)
    return [
        f"Removed {tree.name}."
        + (f" Its commits are on the branch {tree.branch}." if is_kept else "")
    ]


def format_worktree_diff(worktree_diff: WorktreeDiff) -> str:
    """Format the patch of a work tree against its base, including uncommitted files."""
    missing = [
        f"{file.file}: its diff is too large to be shown"
        for file in worktree_diff.files
        if file.patch is None
    ]
    patches = "".join(file.patch or "" for file in worktree_diff.files)
    return (
        "\n".join([patches.rstrip("\n"), *missing]).strip("\n")
        or f"Nothing differs from {worktree_diff.base}."
    )


def format_diff_stat(worktree_diff: WorktreeDiff) -> str:
    """Format the files that a work tree changed, a line each, with how many lines changed."""
    rows = (
        f"{file.status or 'modified':8}  +{file.additions} -{file.deletions}  {file.file}"
        for file in worktree_diff.files
    )
    return "\n".join(rows) or f"Nothing differs from {worktree_diff.base}."


def describe_merge(worktree_merge: WorktreeMerge) -> list[str]:
    """Return lines about the result of a merge: the commit,
    or each conflict with its marked lines.
    """
    lines = (
        [f"Committed first: {', '.join(worktree_merge.committed[:_MAX_LISTED])}"]
        if worktree_merge.committed
        else []
    )
    if worktree_merge.commit is not None:
        return [*lines, f"{worktree_merge.into} holds it: {worktree_merge.commit[:12]}"]
    return [
        *lines,
        *_describe_conflicts("merged", worktree_merge),
        f"Have it solved in the work tree: merge {worktree_merge.into} there, and commit; then merge again.",
    ]


def describe_rebase(name: str, rebase: WorktreeMerge) -> list[str]:
    """Return lines about the result of a rebase: the commit,
    or each conflict with its marked lines.
    """
    if rebase.commit is not None:
        return [f"{name} continues {rebase.into} now: {rebase.commit[:12]}"]
    advice = f"Have it solved in the work tree: `git rebase {rebase.into}` there."
    return [*_describe_conflicts("rebased", rebase), advice]


def _describe_conflicts(done: str, worktree_merge: WorktreeMerge) -> list[str]:
    number = _format_count(len(worktree_merge.conflicts), "file conflicts", "files conflict")
    lines = [f"Nothing was {done}: {number} with {worktree_merge.into}."]
    for each in worktree_merge.conflicts:
        lines += [f"--- {each.file}", *_extract_conflicts(each.text)]
    return lines


def _format_count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _extract_conflicts(text: str | None) -> list[str]:
    """Return the lines between conflict marks, marks included, with three lines of context.
    `text`: None if binary.
    """
    if text is None:
        return ["  not text"]
    lines = text.splitlines()
    shown_lines: set[int] = set()
    start = None
    for index, line in enumerate(lines):
        if line.startswith("<<<<<<< "):
            start = index
        elif line.startswith(">>>>>>> ") and start is not None:
            shown_lines |= set(range(max(start - 3, 0), min(index + 4, len(lines))))
            start = None
    return [lines[index] for index in sorted(shown_lines)]
