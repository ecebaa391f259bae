"""Work trees for user interfaces: carries out `/worktree`, and describes work trees, merges,
and what would be lost.
"""

import re
import shlex

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.formatting import format_time
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.api.worktrees import (
    WORKTREE_COPY,
    WORKTREE_CREATE,
    WORKTREE_DIFF,
    WORKTREE_MERGE,
    WORKTREE_OVERVIEW,
    WORKTREE_REBASE,
    WORKTREE_REMOVE,
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
from codeloop.schema.resources import Worktree

USAGE = (
    "[NAME [PROMPT] | create [NAME] [--base REF] [--sparse DIR] [PROMPT] | list | diff NAME [--stat] | rebase NAME"
    " | merge NAME [--into BRANCH] [-m MESSAGE] [--file FILE] | remove NAME... [--force] | remove --clean"
    " | copy NAME FILE...]"
)
# As those of `codeloop worktree`; `create` opens a work tree, as a name does.
_VERBS = ("list", "diff", "merge", "rebase", "remove", "copy")
_CREATE_VERB = "create"
_CREATE_OPTION = r"(--base|--sparse)[ =]+(\S+)\s*"
_MAX_LISTED = 5
# By the state of a work tree that is not `ready`.
_PROBLEMS_BY_STATE = {
    "unfinished": "making it was cut off; `worktree remove` clears it away",
    "removing": "removing it was cut off; `worktree remove` goes on",
    "gone": "its folder is gone; `worktree remove` forgets it",
}


def is_worktree_verb(words: str) -> bool:
    """Return whether the words after `/worktree` begin with a verb,
    not with the name of a work tree.

    No words count as the verb `list`.
    """
    return not words or words.split(maxsplit=1)[0] in _VERBS


async def open_named_worktree(client: Client, words: str) -> tuple[Worktree, bool, str]:
    """Open the work tree that the words after `/worktree` name, which is made if there is none,
    or `create` one.

    Returns it, whether it was created now, and the words after the name: a prompt.
    Raises CodeloopError.
    """
    name, _, prompt = words.partition(" ")
    if name != _CREATE_VERB:
        similar_verbs = find_similar(name, (*_VERBS, _CREATE_VERB))
        if similar_verbs and not await _has_worktree(client, name):
            raise UsageProblem(
                f"/worktree has no verb {name}.{format_suggestion(similar_verbs)} "
                f"A work tree of that name is made by `/worktree create {name}`."
            )
        tree, is_new = await find_or_create_worktree(client, name)
        return tree, is_new, prompt.strip()
    name, base, sparse, rest = "", None, list[str](), prompt.strip()
    # Options may stand before the name and behind it.
    while rest:
        if match := re.match(_CREATE_OPTION, rest):
            rest = rest[match.end() :]
            if match[1] == "--base":
                base = match[2]
            else:
                sparse.append(match[2])
        elif rest.startswith("-"):
            raise UsageProblem(
                f"/worktree create has no option {rest.split()[0]}. Usage: /worktree {USAGE}"
            )
        elif name:
            break
        else:
            name, _, rest = rest.partition(" ")
            rest = rest.strip()
    tree = await client.call(
        WORKTREE_CREATE, CreateWorktree(name=name or None, base=base, sparse=sparse or None)
    )
    return tree, True, rest


async def _has_worktree(client: Client, name: str) -> bool:
    return any(tree.name == name for tree in await client.call(WORKTREE_OVERVIEW, NoArguments()))


async def find_or_create_worktree(
    client: Client, name: str, base: str | None = None
) -> tuple[Worktree, bool]:
    """Return the work tree of this name, and whether it was created now. Raises CodeloopError.

    `name`: "" creates one with a generated name. `base`: the commit to start from.
    """
    # A name becomes a directory and a branch; a path in it would lead elsewhere.
    if "/" in name:
        raise UsageProblem(f"{name} is not a name of a work tree: letters, digits and hyphens.")
    for tree in await client.call(WORKTREE_OVERVIEW, NoArguments()) if name else ():
        if tree.name == name:
            if tree.state != "ready":
                raise UsageProblem(
                    f"The work tree {name} is not whole: {_PROBLEMS_BY_STATE[tree.state]}."
                )
            if base is not None:
                raise UsageProblem(
                    f"The work tree {name} is there already, from {tree.base}. Leave --base out."
                )
            return Worktree(
                name=tree.name, directory=tree.directory, branch=tree.branch, base=tree.base
            ), False
    return await client.call(WORKTREE_CREATE, CreateWorktree(name=name or None, base=base)), True


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


async def run_worktree_command(client: Client, words: str) -> list[str]:
    """Carry out the verb at the start of `words` (see `is_worktree_verb`);
    return lines for the user.

    Raises CodeloopError.
    """
    arguments = _parse_verb(words or "list")
    names: list[str] = arguments.names
    match arguments.verb:
        case "list":
            return format_worktree_list(await client.call(WORKTREE_OVERVIEW, NoArguments()))
        case "diff":
            changes = await client.call(WORKTREE_DIFF, WorktreeName(name=names[0]))
            return (
                format_diff_stat(changes) if arguments.stat else format_worktree_diff(changes)
            ).split("\n")
        case "merge":
            request = MergeWorktree(
                name=names[0],
                into=arguments.into,
                message=arguments.message,
                files=arguments.files or None,
            )
            return describe_merge(await client.call(WORKTREE_MERGE, request))
        case "rebase":
            return describe_rebase(
                names[0], await client.call(WORKTREE_REBASE, WorktreeName(name=names[0]))
            )
        case "copy":
            files = await client.call(WORKTREE_COPY, CopyToWorktree(name=names[0], files=names[1:]))
            return [f"Copied: {' '.join(files)}"]
        case _:
            # All names are looked up first, so that a wrong one removes nothing.
            trees = [await find_worktree(client, name) for name in names]
            if arguments.clean:
                trees = [
                    tree
                    for tree in await client.call(WORKTREE_OVERVIEW, NoArguments())
                    if not list_losses(tree)
                ]
            lines = [
                line
                for tree in trees
                for line in await _remove(client, tree, is_forced=arguments.force)
            ]
            return lines or ["There is no work tree that holds nothing new."]


class _Arguments(Struct):
    """The words after `/worktree`: a verb, the names after it,
    and the options of `codeloop worktree`.
    """

    verb: str
    names: list[str]
    files: list[str]
    into: str | None = None
    message: str | None = None
    stat: bool = False
    force: bool = False
    clean: bool = False


def _parse_verb(words: str) -> _Arguments:
    """Read a verb with its names and options. Raises UsageProblem."""
    try:
        verb, *rest = shlex.split(words)
    except ValueError as error:
        raise UsageProblem(f"/worktree {words}: a quote is not closed.") from error
    arguments = _Arguments(verb=verb, names=[], files=[])
    while rest:
        word, separator, value = rest.pop(0).partition("=")
        match verb, word:
            case "diff", "--stat":
                arguments.stat = True
            case "remove", "--force":
                arguments.force = True
            case "remove", "--clean":
                arguments.clean = True
            case "merge", "--into" | "-m" | "--message" | "--file" if separator or rest:
                value = value if separator else rest.pop(0)
                if word == "--file":
                    arguments.files.append(value)
                elif word == "--into":
                    arguments.into = value
                else:
                    arguments.message = value
            case _ if word.startswith("-"):
                raise UsageProblem(
                    f"/worktree {verb} has no option {word}, or it lacks a value. Usage: /worktree {USAGE}"
                )
            case _:
                arguments.names.append(word + separator + value)
    count, is_open = len(arguments.names), verb in {"copy", "remove"}
    least = {"list": 0, "copy": 2, "remove": 0 if arguments.clean else 1}.get(verb, 1)
    most = {"list": 0, "remove": 0}.get(verb, 1) if not is_open or arguments.clean else count
    if not least <= count <= most:
        raise UsageProblem(f"Usage: /worktree {USAGE}")
    return arguments


async def find_worktree(client: Client, name: str) -> WorktreeOverview:
    """Return the work tree with this name, branch or directory.
    Raises UsageProblem if there is none.
    """
    trees = await client.call(WORKTREE_OVERVIEW, NoArguments())
    found_tree = next(
        (tree for tree in trees if name in {tree.name, tree.branch, tree.directory}), None
    )
    if found_tree is None:
        names = ", ".join(tree.name for tree in trees[:8])
        raise UsageProblem(
            f"There is no work tree {name}." + (f" There are: {names}." if names else "")
        )
    return found_tree


async def _remove(client: Client, tree: WorktreeOverview, *, is_forced: bool) -> list[str]:
    losses = list_losses(tree)
    if losses and not is_forced:
        return [
            *losses,
            f"{tree.name} was not removed.",
            f"To commit that to {tree.branch} and remove it: /worktree remove {tree.name} --force",
        ]
    await client.call(WORKTREE_REMOVE, RemoveWorktree(directory=tree.directory, force=is_forced))
    return describe_removal(tree, is_forced=is_forced)


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
        return _PROBLEMS_BY_STATE[tree.state]
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
