"""Reads the checked-out branch from one small file,
which is cheap enough to do after every turn.
"""

from pathlib import Path

from codeloop.kit.git import find_git_folder
from codeloop.kit.small_files import read_start_or_empty

_BRANCH_PREFIX = "ref: refs/heads/"
_HEAD_BYTES = 4096


class Head:
    """The HEAD of the work tree at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._text = self._read()

    def refresh(self) -> bool:
        """Read HEAD again; return whether it has changed since the last read: the branch,
        or the commit without one.
        """
        before, self._text = self._text, self._read()
        return self._text != before

    @property
    def branch(self) -> str | None:
        """The branch at the last read; None: a single commit is checked out,
        or there is no repository.
        """
        return (
            self._text.removeprefix(_BRANCH_PREFIX)
            if self._text.startswith(_BRANCH_PREFIX)
            else None
        )

    def _read(self) -> str:
        """Return HEAD as text; empty when it can't be read."""
        folder = find_git_folder(self._root)
        if folder is None:
            return ""
        return read_start_or_empty(folder / "HEAD", _HEAD_BYTES).decode("utf-8", "replace").strip()
