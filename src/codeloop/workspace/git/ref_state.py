"""The state of a repository's references before and after a turn: the checked-out commit, branches,
stashes.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.git.own_folder import read_head
from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.git.head import read_head_commit

_HEADS = "refs/heads/"
# More branches than this are not compared: it would take too long.
_MAX_BRANCHES = 2_000
_MAX_REFS_BYTES = 1024 * 1024
# The commits that are followed back from the new one to the old one.
_MAX_COMMITS = 100
_SHORT_ID = 9


class RefState(NamedTuple):
    """`commit`: of HEAD, b"" for none; `branch`: that is checked out, "" for none.
    `stashes`: their number.

    `branches`: their names; None: there are too many.
    """

    common: Path
    commit: bytes
    branch: str
    branches: frozenset[str] | None
    stashes: int


def read_ref_state(top: Path) -> RefState | None:
    """Read the references of a work tree; None: it has no repository,
    or its references are not files.
    """
    folder = find_git_folder(top)
    if folder is None:
        return None
    common = find_common_folder(folder)
    commit = read_head_commit(folder, common)
    if commit is None:
        return None
    branch = read_head(folder).removeprefix("ref: ").removeprefix(_HEADS)
    names: set[str] = set()
    for name in _list_branches(common):
        names.add(name)
        if len(names) > _MAX_BRANCHES:
            return RefState(common, commit, branch, None, _count_stashes(common))
    return RefState(common, commit, branch, frozenset(names), _count_stashes(common))


def _list_branches(common: Path) -> Iterator[str]:
    for line in (
        read_start_or_empty(common / "packed-refs", _MAX_REFS_BYTES)
        .decode("utf-8", "replace")
        .splitlines()
    ):
        _, _, name = line.partition(" ")
        if name.startswith(_HEADS):
            yield name.removeprefix(_HEADS)
    heads = common / "refs" / "heads"
    for folder, _, files in os.walk(heads):
        prefix = os.path.relpath(folder, heads)
        yield from (
            file if prefix == "." else f"{prefix}/{file}"
            for file in files
            if not file.endswith(".lock")
        )


def _count_stashes(common: Path) -> int:
    return read_start_or_empty(common / "logs" / "refs" / "stash", _MAX_REFS_BYTES).count(b"\n")


def describe_ref_changes(before: RefState, after: RefState | None) -> tuple[str, ...]:
    """Return a phrase for each change of references.
    `after`: None: the repository is gone, or can't be read.
    """
    if after is None:
        return ("this is not a git repository any more",)
    phrases: list[str] = []
    if before.commit != after.commit:
        new_count = _count_commits(after.common, after.commit, before.commit)
        moved = f"{_shorten(before.commit)} -> {_shorten(after.commit)}"
        if new_count is None:
            phrases.append(f"HEAD moved {moved}")
        else:
            phrases.append(f"{_count(new_count, 'commit')} made ({moved})")
    if before.branch != after.branch and before.commit:
        names = [
            state.branch if len(state.branch) != 2 * 20 else "no branch"
            for state in (before, after)
        ]
        phrases.append(f"the checked-out branch changed from {names[0]} to {names[1]}")
    if before.stashes != after.stashes:
        number, verb = (
            after.stashes - before.stashes,
            "made" if after.stashes > before.stashes else "removed",
        )
        phrases.append(f"{_count(abs(number), 'stash')} {verb}")
    if before.branches is not None and after.branches is not None:
        phrases += [f"branch {name} deleted" for name in sorted(before.branches - after.branches)]
    return tuple(phrases)


def _count(number: int, word: str) -> str:
    plural = f"{word}es" if word.endswith("sh") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"


def _shorten(commit: bytes) -> str:
    return commit.hex()[:_SHORT_ID] or "nothing"


def _count_commits(common: Path, new: bytes, old: bytes) -> int | None:
    """Return how many commits lead from the new one back to the old one, by first parents;
    None: it is none of them.
    """
    # Imported late: most turns move no branch.
    from codeloop.workspace.git.objects import GitObjects

    objects, commit = GitObjects(common), new
    for number in range(_MAX_COMMITS):
        if commit == old:
            return number
        parent = objects.read_first_parent(commit)
        if parent is None:
            return number + 1 if not old and parent is None else None
        commit = parent
    return None
