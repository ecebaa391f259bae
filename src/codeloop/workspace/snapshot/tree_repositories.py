"""The repositories of a work tree, as a snapshot needs them: tracked files,
object directories and ignore patterns.

Both the repository at its top and those inside it count. The patterns that apply in each folder are
kept in the `CachedFolder` of the scanner, and updated here.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from codeloop.kit.paths import join_relative
from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.git.ignore_patterns import (
    Patterns,
    is_ignored,
    parse_attributes,
    read_ignore_file,
)
from codeloop.workspace.git.index import (
    IndexedRepository,
    IndexEntry,
    TrackedFiles,
    open_repository,
)
from codeloop.workspace.snapshot.stat_cache import CachedFolder, CachedIgnoreFile

# With one of these, git stores other bytes than the file has.
_CONVERTING_ATTRIBUTES = ("filter", "ident", "working-tree-encoding", "eol")
_RULES_BYTES = 256 * 1024


class TreeRepositories:
    """The repository at the top of a work tree, and those inside it (submodules, clones)."""

    def __init__(self, root: str, excludes: Iterable[Path], *, with_index: bool) -> None:
        """`excludes`: the user's own files of patterns.
        `with_index`: read the index, for the first snapshot.
        """
        self._root = root
        self._with_index = with_index
        self._repositories: dict[str, IndexedRepository] = {}
        # Patterns of `.git/info/exclude`, by the path of the repository.
        self._excludes: dict[str, Patterns] = {}
        self._user_patterns = _drop_empty(
            *(read_ignore_file(path, "", _RULES_BYTES) for path in excludes)
        )
        self._tracked: TrackedFiles = {}
        self._folders_above_tracked: set[str] = set()

    @property
    def object_folders(self) -> list[Path]:
        """The object directories of all repositories,
        whose objects a snapshot need not store again.
        """
        return [repository.objects_folder for repository in self._repositories.values()]

    def add_if_new(self, path: str, folder: CachedFolder) -> bool:
        """Add the repository of the work tree with this top;
        return whether there is one that was not known.

        Its own patterns of converted files are added to `folder`, that top.
        """
        if path in self._repositories:
            return False
        repository = open_repository(Path(self._root, path), with_index=self._with_index)
        if repository is None:
            return False
        self._repositories[path] = repository
        self._excludes[path] = read_ignore_file(
            repository.common / "info" / "exclude", path, _RULES_BYTES
        )
        text = read_start_or_empty(repository.common / "info" / "attributes", _RULES_BYTES)
        folder.converting_rules = (
            *_drop_empty(parse_attributes(text, path, _CONVERTING_ATTRIBUTES)),
            *folder.converting_rules,
        )
        for below, names in repository.tracked.items():
            tracked_folder = join_relative(path, below) if below else path
            self._tracked[tracked_folder] = names
            while tracked_folder and tracked_folder not in self._folders_above_tracked:
                self._folders_above_tracked.add(tracked_folder)
                tracked_folder = tracked_folder.rpartition("/")[0]
        return True

    def drop_index(self) -> None:
        """Forget the index: after the first snapshot, the snapshot's own table has the same."""
        self._with_index = False
        self._tracked.clear()
        self._folders_above_tracked.clear()

    def leads_to_tracked(self, path: str) -> bool:
        """Return whether a folder, even an ignored one, holds tracked files."""
        return path in self._folders_above_tracked

    def find_index_entry(self, path: str, name: str) -> IndexEntry | None:
        """Return the index entry of a file that the snapshot does not know yet;
        None: it is not tracked.
        """
        return self._tracked.get(path, {}).get(name) if self._tracked else None

    def is_clean(
        self, tracked: IndexEntry, folder: CachedFolder, path: str, name: str, info: os.stat_result
    ) -> bool:
        """Return whether the repository has exactly the bytes of a tracked file: unchanged,
        and not converted.
        """
        if not tracked.blob or not tracked.is_unchanged(info):
            return False
        # `is_ignored` matches the patterns of attributes as it does those of .gitignore.
        return not folder.converting_rules or not is_ignored(
            folder.converting_rules, join_relative(path, name), name, is_folder=False
        )

    def update_rules(
        self,
        path: str,
        folder: CachedFolder,
        above: CachedFolder | None,
        names: set[str],
        *,
        is_complete: bool,
    ) -> bool:
        """Update the patterns that apply in a folder;
        return whether its own .gitignore has changed.

        `above`: the folder it is in; `names`: its entries.
        `is_complete`: update even if its .gitignore is the same.
        """
        ignore_file = (
            self._read_ignore_file(path, folder.ignore_file) if ".gitignore" in names else None
        )
        old_state = folder.ignore_file.state if folder.ignore_file else None
        has_changed = old_state != (ignore_file.state if ignore_file else None)
        folder.ignore_file = ignore_file
        if not is_complete and not has_changed:
            return False
        outer = self._user_patterns if above is None else above.ignore_rules
        if path in self._excludes:
            outer = (*_drop_empty(self._excludes[path]), *outer)
        folder.ignore_rules = outer if ignore_file is None else (ignore_file.patterns, *outer)
        if self._tracked:
            if ".gitattributes" in names:
                text = read_start_or_empty(Path(self._root, path, ".gitattributes"), _RULES_BYTES)
                folder.converting_rules = (
                    *_drop_empty(parse_attributes(text, path, _CONVERTING_ATTRIBUTES)),
                    *folder.converting_rules,
                )
            folder.converting_rules = (
                *folder.converting_rules,
                *(above.converting_rules if above is not None else ()),
            )
        return has_changed

    def _read_ignore_file(
        self, path: str, known: CachedIgnoreFile | None
    ) -> CachedIgnoreFile | None:
        """Return the .gitignore of a folder, parsed again only if it has changed;
        None: it is missing.
        """
        file = Path(self._root, path, ".gitignore")
        state = _read_file_state(file)
        if state is None:
            return None
        if known is not None and known.state == state:
            return known
        return CachedIgnoreFile(state, read_ignore_file(file, path, _RULES_BYTES))


def _drop_empty(*patterns: Patterns) -> tuple[Patterns, ...]:
    """Return those with at least one pattern: each of them costs time for every file."""
    return tuple(each for each in patterns if each.lines)


def _read_file_state(file: Path) -> tuple[int, int, int] | None:
    """Return modification time, size and inode, which tell whether a file has changed;
    None: it is missing.
    """
    try:
        info = os.lstat(file)
    except OSError:
        return None
    return (info.st_mtime_ns, info.st_size, info.st_ino)
