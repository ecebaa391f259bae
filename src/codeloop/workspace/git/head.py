"""The checked-out branch, read from one small file, which is cheap enough after every turn."""

from pathlib import Path

from codeloop.kit.git import find_git_folder
from codeloop.workspace.git.index import read_small

_BRANCH_PREFIX = "ref: refs/heads/"
_HEAD_BYTES = 4096


class Head:
    """The HEAD of the work tree at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._last = self._read()

    def take_move(self) -> bool:
        """Read HEAD again; return whether the branch has changed since the last read."""
        before, self._last = self._last, self._read()
        return self._last != before

    @property
    def branch(self) -> str | None:
        """The branch at the last read; None: a single commit is checked out, or there is no repository."""
        return self._last.removeprefix(_BRANCH_PREFIX) if self._last.startswith(_BRANCH_PREFIX) else None

    def _read(self) -> str:
        """Return HEAD as text; empty when it can't be read."""
        folder = find_git_folder(self._root)
        return read_small(folder / "HEAD", _HEAD_BYTES).decode("utf-8", "replace").strip() if folder is not None else ""
