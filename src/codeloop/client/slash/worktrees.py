"""The `/worktree` command for all user interfaces: its actions, and texts about merges and losses."""

from codeloop.client.client import Client
from codeloop.client.numbers import format_time
from codeloop.kit.terminal_text import one_line
from codeloop.schema.api.project import Worktree
from codeloop.schema.api.worktrees import (
    CopyToWorktree,
    CreateWorktree,
    MergeWorktree,
    RemoveWorktree,
    WorktreeDiff,
    WorktreeMerge,
    WorktreeName,
    WorktreeOverview,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.operation import NoArguments
from codeloop.schema.server_operation import (
    WORKTREE_COPY,
    WORKTREE_CREATE,
    WORKTREE_DIFF,
    WORKTREE_MERGE,
    WORKTREE_OVERVIEW,
    WORKTREE_REBASE,
    WORKTREE_REMOVE,
)

USAGE = "[NAME | list | diff NAME | merge NAME [--into BRANCH] | rebase NAME | remove NAME | copy NAME FILE...]"
_VERBS = ("list", "diff", "merge", "rebase", "remove", "copy")
_MOST = 5
_BROKEN = {
    "unfinished": "making it was cut off; `worktree remove` clears it away",
    "removing": "removing it was cut off; `worktree remove` goes on",
    "gone": "its folder is gone; `worktree remove` forgets it",
}


def is_verb(words: str) -> bool:
    """Return whether the words after `/worktree` ask about work trees, and don't name one to go to."""
    return not words or words.split(maxsplit=1)[0] in _VERBS


async def enter_worktree(client: Client, name: str, base: str | None = None) -> tuple[Worktree, bool]:
    """Return the work tree with this name, and whether it was made now. Raises CodeloopError; `name` may be empty."""
    if "/" in name:
        raise UsageProblem(f"{name} is no name of a work tree: letters, digits and hyphens.")
    for row in await client.call(WORKTREE_OVERVIEW, NoArguments()) if name else ():
        if row.name == name:
            if row.state != "ready":
                raise UsageProblem(f"The work tree {name} is not whole: {_BROKEN[row.state]}.")
            if base is not None:
                raise UsageProblem(f"The work tree {name} is there already, from {row.base}. Leave --base out.")
            return Worktree(name=row.name, directory=row.directory, branch=row.branch, base=row.base), False
    return await client.call(WORKTREE_CREATE, CreateWorktree(name=name or None, base=base)), True


def made_lines(tree: Worktree, *, is_new: bool) -> list[str]:
    """Say where one works now, and what was not copied."""
    base = f", from {tree.base[:12] if tree.base else '?'}" if is_new else ""
    lines = [f"Work tree {tree.name}{'' if is_new else ' again'}: {tree.directory} (branch {tree.branch}{base})"]
    lines += tree.notes
    if tree.asks:
        files = " ".join(tree.asks[:_MOST])
        lines.append(
            f"Not copied, as it may hold secrets: {files}. To copy: codeloop worktree copy {tree.name} {files}"
        )
    return lines


async def run_worktree(client: Client, words: str) -> list[str]:
    """Do what the words after `/worktree` say; return lines for the user. Raises CodeloopError."""
    verb, *names = words.split() or ["list"]
    if verb == "list" and not names:
        return overview_lines(await client.call(WORKTREE_OVERVIEW, NoArguments()))
    is_forced = verb == "remove" and "--force" in names
    names = [name for name in names if name != "--force"]
    into = None
    if verb == "merge" and len(names) == 3 and names[1] == "--into":
        names, into = names[:1], names[2]
    if not names or (len(names) > 1 and verb != "copy"):
        raise UsageProblem(f"Usage: /worktree {USAGE}")
    match verb:
        case "diff":
            return diff_text(await client.call(WORKTREE_DIFF, WorktreeName(name=names[0]))).split("\n")
        case "merge":
            return merge_lines(await client.call(WORKTREE_MERGE, MergeWorktree(name=names[0], into=into)))
        case "rebase":
            return rebase_lines(names[0], await client.call(WORKTREE_REBASE, WorktreeName(name=names[0])))
        case "copy":
            files = await client.call(WORKTREE_COPY, CopyToWorktree(name=names[0], files=names[1:]))
            return [f"Copied: {' '.join(files)}"]
        case _:
            return await _remove(client, names[0], is_forced=is_forced)


async def find_overview(client: Client, name: str) -> WorktreeOverview:
    """Return the state of the work tree with this name, branch or folder. Raises UsageProblem: there is none."""
    rows = await client.call(WORKTREE_OVERVIEW, NoArguments())
    worktree_overview = next((row for row in rows if name in {row.name, row.branch, row.directory}), None)
    if worktree_overview is None:
        names = ", ".join(row.name for row in rows[:8])
        raise UsageProblem(f"There is no work tree {name}." + (f" There are: {names}." if names else ""))
    return worktree_overview


async def _remove(client: Client, name: str, *, is_forced: bool) -> list[str]:
    row = await find_overview(client, name)
    if (losses := loss_lines(row)) and not is_forced:
        return [
            *losses,
            f"Nothing was removed. To commit that to {row.branch} and remove it: remove {row.name} --force",
        ]
    await client.call(WORKTREE_REMOVE, RemoveWorktree(directory=row.directory, force=is_forced))
    return removed_lines(row, is_forced=is_forced)


def overview_lines(rows: list[WorktreeOverview]) -> list[str]:
    """Return one line a work tree: its name, where it comes from, what it holds."""
    if not rows:
        return ["No work trees. `codeloop --worktree NAME` makes one."]
    wide = max(len(row.name) for row in rows)
    return [
        f"{row.name:{wide}}  {format_time(row.created)}  {_describe(row)}  {one_line(row.directory, 200)}"
        for row in rows
    ]


def _describe(row: WorktreeOverview) -> str:
    if row.state != "ready":
        return _BROKEN[row.state]
    facts = [f"from {row.base}" if row.base and len(row.base) < 40 else f"from {(row.base or '?')[:12]}"]
    facts += [f"{len(row.changed)} changed"] if row.changed else []
    facts += [f"{row.ahead} ahead"] if row.ahead else []
    facts += [f"{row.behind} behind"] if row.behind else []
    facts += [f"{len(row.running)} running"] if row.running else []
    facts += [one_line(row.error, 80)] if row.error else []
    return ", ".join(facts if len(facts) > 1 else [*facts, "nothing new"])


def loss_lines(row: WorktreeOverview) -> list[str]:
    """List what a work tree holds that is nowhere else: uncommitted files, commits, what runs; empty: nothing."""
    lines: list[str] = []
    if row.running:
        lines.append(f"{row.name}: a turn runs in {', '.join(row.running)}")
    if row.changed and row.state == "ready":
        more = f" and {len(row.changed) - _MOST} more" if len(row.changed) > _MOST else ""
        lines.append(f"{row.name}: not committed: {', '.join(row.changed[:_MOST])}{more}")
    if row.unmerged and row.state == "ready":
        lines.append(
            f"{row.name}: {_count(row.unmerged, 'commit is', 'commits are')} in no other branch, tag or remote"
        )
    return [*lines, *([f"{row.name}: {row.error}"] if row.error else [])]


def removed_lines(row: WorktreeOverview, *, is_forced: bool) -> list[str]:
    """Say what was removed, and where its commits are."""
    is_kept = row.unmerged or (is_forced and row.changed)
    return [f"Removed {row.name}." + (f" Its commits are on the branch {row.branch}." if is_kept else "")]


def diff_text(worktree_diff: WorktreeDiff) -> str:
    """Return the patch of a work tree against its base, uncommitted files too."""
    missing = [f"{file.file}: its diff is too large to be shown" for file in worktree_diff.files if file.patch is None]
    patches = "".join(file.patch or "" for file in worktree_diff.files)
    return "\n".join([patches.rstrip("\n"), *missing]).strip("\n") or f"Nothing differs from {worktree_diff.base}."


def merge_lines(worktree_merge: WorktreeMerge) -> list[str]:
    """Say what came of a merge: where the branch is, or each conflict with its marked lines."""
    lines = [f"Committed first: {', '.join(worktree_merge.committed[:_MOST])}"] if worktree_merge.committed else []
    if worktree_merge.commit is not None:
        return [*lines, f"{worktree_merge.into} holds it: {worktree_merge.commit[:12]}"]
    return [
        *lines,
        *_conflict_lines("merged", worktree_merge),
        f"Have it solved in the work tree: merge {worktree_merge.into} there, and commit; then merge again.",
    ]


def rebase_lines(name: str, rebase: WorktreeMerge) -> list[str]:
    """Say what came of a rebase of the work tree with this name, as `merge_lines` does of a merge."""
    if rebase.commit is not None:
        return [f"{name} continues {rebase.into} now: {rebase.commit[:12]}"]
    advice = f"Have it solved in the work tree: `git rebase {rebase.into}` there."
    return [*_conflict_lines("rebased", rebase), advice]


def _conflict_lines(done: str, worktree_merge: WorktreeMerge) -> list[str]:
    number = _count(len(worktree_merge.conflicts), "file conflicts", "files conflict")
    lines = [f"Nothing was {done}: {number} with {worktree_merge.into}."]
    for each in worktree_merge.conflicts:
        lines += [f"--- {each.file}", *_list_conflict_lines(each.text)]
    return lines


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _list_conflict_lines(text: str | None) -> list[str]:
    """Return the lines between conflict marks, marks included, with three lines around."""
    if text is None:
        return ["  not text"]
    lines = text.splitlines()
    shown_lines: set[int] = set()
    start = None
    for at, line in enumerate(lines):
        start = at if line.startswith("<<<<<<< ") else start
        if line.startswith(">>>>>>> ") and start is not None:
            shown_lines |= set(range(max(start - 3, 0), min(at + 4, len(lines))))
            start = None
    return [lines[at] for at in sorted(shown_lines)]
