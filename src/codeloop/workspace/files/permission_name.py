"""The names of files that permission rules match."""

from pathlib import Path
from typing import Protocol

from codeloop.kit.guarded_paths import fold_path, is_protected, is_secret

_PLANS_FOLDER = ".codeloop/plans/"


class NamedTree(Protocol):
    """The work tree whose files are named: a Workspace."""

    root: Path

    def format_for_user(self, path: Path) -> str:
        """Format a path relative to the root."""
        ...


def make_permission_name(workspace: NamedTree, real: Path) -> str:
    """Return the name of a resolved path that permission rules match: relative to the work tree;
    "." is its top.
    """
    # Guarded files are compared as on a disk that ignores case, where `.ENV` is the file `.env`.
    name = workspace.format_for_user(real) or "."
    folded = fold_path(name) if is_protected(name) or is_secret(name) else name
    # Rules allow what is written in the folder of plans,
    # in which no other spelling is on most disks.
    return name if folded.startswith(_PLANS_FOLDER) else folded
