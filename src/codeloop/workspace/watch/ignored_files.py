"""Decides which paths of a work tree are not watched: ignored by git or the configuration,
or filled by tools.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codeloop.kit.paths import join_relative
from codeloop.workspace.git.ignore_patterns import (
    Patterns,
    is_ignored,
    list_user_excludes,
    parse_ignore_file,
    read_ignore_file,
)

_UNWATCHED_FOLDERS = frozenset(
    (
        *(
            ".git",
            ".hg",
            ".svn",
            ".jj",
            "node_modules",
            ".venv",
            "venv",
            "__pycache__",
            ".tox",
            ".nox",
            ".gradle",
        ),
        *(
            ".mypy_cache",
            ".ruff_cache",
            ".pytest_cache",
            ".hypothesis",
            ".terraform",
            ".next",
            ".nuxt",
            ".turbo",
        ),
    )
)
"""Folders that are never watched, not even in repositories without a `.gitignore`."""
# The most bytes of an ignore file that are read.
_MAX_FILE_BYTES = 256 * 1024


class IgnoredFiles:
    """The ignore patterns of a work tree. Paths are relative to its top, "" for the top itself."""

    def __init__(
        self,
        root: Path,
        git: Path | None,
        extra_patterns: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        """`git`: the repository's folder; `extra_patterns`: further patterns as in `.gitignore`."""
        self._root = root
        files = list_user_excludes(environment)
        if git is not None:
            files = (git / "info" / "exclude", *files)
        self._repository_patterns = tuple(
            read_ignore_file(file, "", _MAX_FILE_BYTES) for file in files
        )
        self._extra_patterns = (parse_ignore_file("\n".join(extra_patterns).encode(), ""),)
        self._patterns_by_folder: dict[str, tuple[Patterns, ...]] = {}

    def read_folder(self, folder: str, names: Iterable[str]) -> None:
        """Read the ignore patterns of a folder. Its parent has to be read before.
        `names`: those of its files.
        """
        above = (
            self._patterns_by_folder.get(folder.rpartition("/")[0], ())
            if folder
            else self._repository_patterns
        )
        if ".gitignore" in names:
            own_patterns = read_ignore_file(
                self._root / folder / ".gitignore", folder, _MAX_FILE_BYTES
            )
            self._patterns_by_folder[folder] = (own_patterns, *above)
        else:
            # The same tuple, so that most folders take no memory of their own.
            self._patterns_by_folder[folder] = above

    def is_ignored_entry(self, folder: str, name: str, *, is_folder: bool) -> bool:
        """Return whether an entry of a folder is not watched.
        `is_folder`: whether the entry is a folder.
        """
        path = join_relative(folder, name)
        if (is_folder and name in _UNWATCHED_FOLDERS) or is_ignored(
            self._extra_patterns, path, name, is_folder=is_folder
        ):
            return True
        patterns = self._patterns_by_folder.get(
            folder, self._patterns_by_folder.get("", self._repository_patterns)
        )
        return is_ignored(patterns, path, name, is_folder=is_folder)

    def forget_folder(self, folder: str) -> None:
        """Forget the patterns of a removed folder."""
        # Without those of the top, entries of unknown folders would be watched.
        if folder:
            self._patterns_by_folder.pop(folder, None)
