"""The paths in the git directory of the user's repository that belong to other work trees than the one of a project.

The sandbox protects them (`policy.py`). What is missing is made first, since only what exists can be protected.
"""

import os
from contextlib import suppress
from pathlib import Path

from codeloop.workspace.git.planted.layout import (
    find_git_folders,
    list_work_tree_folders,
    read_pointer,
    read_reference,
)

# Entries of a git directory that all work trees read, and that usually only the main one writes.
_SHARED_ENTRIES = ("shallow", "info")
# The state of the main work tree in a git directory.
_MAIN_TREE_ENTRIES = (
    *("HEAD", "index", "logs/HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "rebase-merge", "rebase-apply", "sequencer"),
    *("BISECT_LOG", "BISECT_START", "refs/bisect", "refs/rewritten", "refs/worktree"),
)
# The most packs that a sandbox protects: each takes two mounts, for `.pack` and `.idx`.
_MAX_PACKS = 200


def prepare_foreign_files(root: Path) -> list[Path]:
    """Return the paths in a linked work tree's repository that belong to its other work trees; none for the main one.

    These are, in the repository and in each submodule that is checked out in this work tree:

    - the state of each other work tree, with the branch that is checked out there and the log of the branch;
    - what all work trees read, such as `info`;
    - the packs of objects.

    Of a submodule that is not checked out in this work tree it is the whole git directory.

    Makes the files of packed branches and the folder `info` where they are missing: what does not exist can't be
    protected, and a command could make it.
    """
    folders = list(find_git_folders(root))
    # The git directory of a linked work tree lies in `worktrees` of the one that all share.
    if len(folders) < 2 or folders[0].parent != folders[1] / "worktrees":
        return []
    own, shared, *modules = folders
    top = os.path.realpath(root)
    foreign = _prepare_state_of_others(shared, own)
    for module in modules:
        pointers = {tree: read_pointer(tree / "gitdir") for tree in list_work_tree_folders(module)}
        in_root = [tree for tree, path in pointers.items() if path is not None and path.is_relative_to(top)]
        foreign += _prepare_state_of_others(module, in_root[0]) if len(in_root) == 1 else [module]
    return foreign


def _prepare_state_of_others(shared: Path, own: Path) -> list[Path]:
    """Return the paths in a git directory that don't belong to the linked work tree whose folder there is `own`.

    Missing ones are made (see `prepare_foreign_files`).
    """
    others = [each for each in list_work_tree_folders(shared) if each != own]
    heads = {read_reference(each / "HEAD") for each in (shared, *others)} - {read_reference(own / "HEAD")}
    heads = {head for head in heads if head.startswith("refs/heads/") and ".." not in head}
    with suppress(OSError):
        (shared / "info").mkdir(exist_ok=True)
    for branch in (shared / head for head in heads):
        if not os.path.lexists(branch):  # after `git gc`; only a file can be protected
            _unpack_branch(shared, branch)
    files = [shared / name for head in sorted(heads) for name in (head, f"logs/{head}")]
    return [
        *others,
        *(shared / name for name in (*_MAIN_TREE_ENTRIES, *_SHARED_ENTRIES)),
        *(file for file in files if file.is_file()),
        *_list_packs(shared / "objects/pack"),
    ]


def _unpack_branch(shared: Path, branch: Path) -> None:
    """Write the file of a branch that is in `packed-refs` alone, as git does when it changes one; git prefers it."""
    end = f" {branch.relative_to(shared)}\n".encode()
    lock = branch.with_name(f"{branch.name}.lock")
    with suppress(OSError):
        branch.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("xb") as file:  # git itself waits, or fails, while this is there
            try:
                with (shared / "packed-refs").open("rb") as packed:
                    commit = next((line.split()[0] for line in packed if line.endswith(end)), b"")
                file.write(commit + b"\n")
                file.flush()
                if commit and not os.path.lexists(branch):
                    lock.rename(branch)
            finally:
                lock.unlink(missing_ok=True)


def _list_packs(folder: Path) -> list[Path]:
    """Return the packs of objects in a folder and their indexes: the largest ones where there are very many."""
    try:
        with os.scandir(folder) as entries:
            packs = [(entry.stat().st_size, entry.path) for entry in entries if entry.name.endswith(".pack")]
    except OSError:
        return []
    largest = sorted(packs, reverse=True)[:_MAX_PACKS]
    return [Path(path).with_suffix(suffix) for _, path in largest for suffix in (".pack", ".idx")]
