"""The repositories in a work tree: what they track, which objects they share, what they ignore."""

import os
from collections.abc import Iterable
from pathlib import Path

from codeloop.workspace.git.ignore_patterns import Patterns, is_ignored, parse, parse_attributes
from codeloop.workspace.git.index import Repository, Tracked, open_repository, read_small
from codeloop.workspace.snapshot.stat_cache import CachedFolder, join

_CONVERTING_ATTRIBUTES = ("filter", "ident", "working-tree-encoding", "eol")
"""With one of these, git stores other bytes than the file has."""
_RULES_BYTES = 256 * 1024


class NestedRepositories:
    """The repository at the top of a work tree, and those inside it (submodules, clones)."""

    def __init__(self, root: str, excludes: Iterable[Path], *, with_index: bool) -> None:
        """`excludes`: the user's own files of patterns. `with_index`: read the index, for the first snapshot."""
        self._root = root
        self._with_index = with_index
        self._repositories: dict[str, Repository] = {}
        self._excludes: dict[str, Patterns] = {}
        self._global = _drop_empty(*(parse(read_small(path, _RULES_BYTES), "") for path in excludes))
        self._tracked: dict[str, dict[str, Tracked]] = {}
        self._above: set[str] = set()

    @property
    def object_folders(self) -> list[Path]:
        """Their object directories."""
        return [repository.objects for repository in self._repositories.values()]

    def add_if_new(self, path: str, folder: CachedFolder) -> bool:
        """Add the repository whose work tree starts here; True when it is a new one."""
        if path in self._repositories:
            return False
        repository = open_repository(Path(self._root, path), with_index=self._with_index)
        if repository is None:
            return False
        self._repositories[path] = repository
        self._excludes[path] = parse(read_small(repository.common / "info" / "exclude", _RULES_BYTES), path)
        words = read_small(repository.common / "info" / "attributes", _RULES_BYTES)
        folder.converted = (*_drop_empty(parse_attributes(words, path, _CONVERTING_ATTRIBUTES)), *folder.converted)
        for below, names in repository.tracked.items():
            here = join(path, below) if below else path
            self._tracked[here] = names
            while here and here not in self._above:
                self._above.add(here)
                here = here.rpartition("/")[0]
        return True

    def drop_index(self) -> None:
        """Forget the index: after the first snapshot its own table has the same."""
        self._with_index = False
        self._tracked.clear()
        self._above.clear()

    def leads_to_tracked(self, path: str) -> bool:
        """Return whether a folder, even an ignored one, holds tracked files."""
        return path in self._above

    def index_entry(self, path: str, name: str) -> Tracked | None:
        """Return the index entry of a file that the snapshot does not know yet; None: it is not tracked."""
        return self._tracked.get(path, {}).get(name) if self._tracked else None

    def is_clean(self, tracked: Tracked, folder: CachedFolder, path: str, name: str, info: os.stat_result) -> bool:
        """Return whether the repository has exactly the bytes of a tracked file: unchanged, and not converted."""
        if not tracked.blob or not tracked.same(info):
            return False
        return not folder.converted or not is_ignored(folder.converted, join(path, name), name, is_folder=False)

    def update_rules(
        self, path: str, folder: CachedFolder, above: CachedFolder | None, names: set[str], *, is_complete: bool
    ) -> bool:
        """Update the patterns that apply in a folder; True when its own .gitignore has changed.

        `above`: the folder it is in; `names`: its entries. Not `is_complete`: only if its .gitignore has changed.
        """
        stamp, own = None, None
        if ".gitignore" in names:
            file = Path(self._root, path, ".gitignore")
            stamp = _file_state(file)
            is_known = folder.own is not None and folder.own[0] == stamp
            own = folder.own[1] if is_known and folder.own else parse(read_small(file, _RULES_BYTES), path)
        changed = (folder.own[0] if folder.own else None) != stamp
        folder.own = (stamp, own) if stamp is not None and own is not None else None
        if not is_complete and not changed:
            return False
        outer = self._global if above is None else above.rules
        if path in self._excludes:
            outer = (*_drop_empty(self._excludes[path]), *outer)
        folder.rules = outer if own is None else (own, *outer)
        if self._tracked:
            if ".gitattributes" in names:
                words = read_small(Path(self._root, path, ".gitattributes"), _RULES_BYTES)
                folder.converted = (
                    *_drop_empty(parse_attributes(words, path, _CONVERTING_ATTRIBUTES)),
                    *folder.converted,
                )
            folder.converted = (*folder.converted, *(above.converted if above is not None else ()))
        return changed


def _drop_empty(*patterns: Patterns) -> tuple[Patterns, ...]:
    """Return the files of patterns that have a line: each one costs time for every file."""
    return tuple(each for each in patterns if each.lines)


def _file_state(file: Path) -> tuple[int, int, int] | None:
    try:
        info = os.lstat(file)
    except OSError:
        return None
    return (info.st_mtime_ns, info.st_size, info.st_ino)
