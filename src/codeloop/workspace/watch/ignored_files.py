"""Paths that are not watched: ignored by git, named in the configuration, or filled by tools."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codeloop.workspace.git.ignore_patterns import (
    Patterns,
    is_ignored,
    list_user_excludes,
    parse_ignore_file,
    read_ignore_file,
)

_NEVER = frozenset(
    (
        *(".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".gradle"),
        *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".terraform", ".next", ".nuxt", ".turbo"),
    )
)
"""Folders that are never watched, in repositories without a `.gitignore` too."""
_BYTES = 256 * 1024


class IgnoredFiles:
    """Which files and folders of a work tree are not watched. Paths are relative to its top, "" for the top itself."""

    def __init__(self, root: Path, git: Path | None, more: Sequence[str], environment: Mapping[str, str]) -> None:
        """`more`: further patterns as in `.gitignore`."""
        self._root = root
        files = list_user_excludes(environment)
        if git is not None:
            files = (git / "info" / "exclude", *files)
        self._outside = tuple(read_ignore_file(file, "", _BYTES) for file in files)
        self._first = (parse_ignore_file("\n".join(more).encode(), ""),)
        self._chains: dict[str, tuple[Patterns, ...]] = {}

    def enter(self, folder: str, names: Iterable[str]) -> None:
        """Read the ignore patterns of a folder, after its parent's. `names`: of its files."""
        above = self._chains.get(folder.rpartition("/")[0], ()) if folder else self._outside
        own = (read_ignore_file(self._root / folder / ".gitignore", folder, _BYTES),) if ".gitignore" in names else ()
        self._chains[folder] = (*own, *above) if own else above

    def has(self, folder: str, name: str, *, is_folder: bool) -> bool:
        """Return whether a name in a folder is not watched. Names in a folder that was not entered are watched."""
        path = f"{folder}/{name}" if folder else name
        if (is_folder and name in _NEVER) or is_ignored(self._first, path, name, is_folder=is_folder):
            return True
        chain = self._chains.get(folder, self._chains.get("", self._outside))
        return is_ignored(chain, path, name, is_folder=is_folder)

    def forget(self, folder: str) -> None:
        """Forget a folder that is gone."""
        if folder:
            self._chains.pop(folder, None)
