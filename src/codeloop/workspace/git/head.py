"""Which branch is checked out, read from one small file, so that it can be looked at after every turn."""

from pathlib import Path

from codeloop.kit.git import git_folder
from codeloop.workspace.git.index import read_small

_BRANCH = "ref: refs/heads/"
_BYTES = 4096


class Head:
    """The HEAD of the work tree at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._last = self._read()

    def take_move(self) -> bool:
        """Return whether another branch is checked out than at the last look."""
        before, self._last = self._last, self._read()
        return self._last != before

    @property
    def branch(self) -> str | None:
        """The branch at the last look; None: a single commit is checked out, or there is no repository."""
        return self._last.removeprefix(_BRANCH) if self._last.startswith(_BRANCH) else None

    def _read(self) -> str:
        """Return HEAD as text; empty when it can't be read."""
        folder = git_folder(self._root)
        return read_small(folder / "HEAD", _BYTES).decode("utf-8", "replace").strip() if folder is not None else ""
