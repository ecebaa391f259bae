"""What files and folders of a project appear, change and go while commands run,
by events of its watched folders.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codeloop.kit.git import find_git_folder
from codeloop.workspace.git.index import read_tracked_files
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.inotify import (
    CREATED_BIT,
    DELETED_BIT,
    FOLDER_BIT,
    MOVED_AWAY_BIT,
    MOVED_HERE_BIT,
    WRITTEN_BIT,
)

# Of more entries it is not said what was removed.
_MAX_ENTRIES = 20_000
# So many files of the folders nearest the top are known by name, some 5 MB: of others it is not
# told when one replaces them.
_MAX_NAMES = 50_000
_NAMED = 5
# What tools make again from what is there.
_MADE_AGAIN_NAMES = frozenset(
    (
        "__pycache__",
        "build",
        "dist",
        "out",
        "target",
        "coverage",
        "htmlcov",
        ".coverage",
        ".next",
        ".nuxt",
        ".turbo",
    )
)
_MADE_AGAIN_ENDS = (
    *(
        ".pyc",
        ".pyo",
        ".o",
        ".a",
        ".so",
        ".obj",
        ".class",
        ".log",
        ".tmp",
        ".swp",
        ".lock",
        ".pid",
        "~",
    ),
    *("_cache", ".cache", ".egg-info"),
)
# What tools write again and again, besides.
_WRITTEN_AGAIN_NAMES = frozenset(
    ("log", "logs", "tmp", "temp", "test-results", "playwright-report", "nohup.out")
)
_WRITTEN_AGAIN_ENDS = (
    "-journal",
    "-wal",
    "-shm",
    ".tsbuildinfo",
    ".out",
    ".gcda",
    ".profraw",
    "cache",
)


class EntryChanges:
    """Collects the events. `ignore_files`: the `.gitignore` files that have changed."""

    def __init__(self) -> None:
        self.ignore_files: set[str] = set()
        self._made: set[str] = set()
        # Each with whether it was a folder.
        self._removed: dict[str, bool] = {}
        self._written: set[str] = set()
        # What earlier commands have made, and what was told of already.
        self._known: set[str] = set()
        # The names of the files in each folder, of which another one may take the place.
        self._names: dict[str, set[str]] = {}
        self._spare_names = _MAX_NAMES

    def clear(self) -> None:
        """Forget all."""
        self.ignore_files.clear()
        self._made.clear()
        self._removed.clear()
        self._written.clear()

    def remember_made(self) -> None:
        """Remember what a command that ends has made: it is not the user's
        that a later one changes.
        """
        if len(self._known) < _MAX_ENTRIES:
            self._known |= self._made

    def note_names(self, folder: str, names: set[str]) -> None:
        """Take note of the files that a folder has now."""
        self._spare_names += len(self._names.pop(folder, ()))
        if len(names) <= self._spare_names:
            self._names[folder] = names
            self._spare_names -= len(names)

    def forget_names(self) -> None:
        """Forget the files that folders have."""
        self._names.clear()
        self._spare_names = _MAX_NAMES

    def note_event(self, folder: str, name: str, mask: int) -> None:
        """Take note of an event in a folder. `mask`: the kernel's bits."""
        path = f"{folder}/{name}"
        if name == ".gitignore":
            self.ignore_files.add(path)
        names = self._names.get(folder, set())
        if mask & MOVED_HERE_BIT and name in names and path not in self._made:
            # No event tells of the file that was there: it is gone as if written over.
            self._written.add(path)
            return
        if mask & CREATED_BIT and not mask & FOLDER_BIT:
            names.add(name)
        elif mask & (DELETED_BIT | MOVED_AWAY_BIT):
            names.discard(name)
        if mask & DELETED_BIT:
            if path in self._made:
                self._made.discard(path)
            # Of what is made in a new folder, before it is watched, no event tells.
            elif self._made and not self._made.isdisjoint(map(str, Path(path).parents)):
                pass
            elif len(self._removed) < _MAX_ENTRIES:
                self._removed[path] = bool(mask & FOLDER_BIT)
        elif mask & CREATED_BIT:
            if path not in self._removed and len(self._made) < _MAX_ENTRIES:
                self._made.add(path)
        elif mask & WRITTEN_BIT and path not in self._made and len(self._written) < _MAX_ENTRIES:
            self._written.add(path)

    @property
    def has_losses(self) -> bool:
        """Whether something was removed, or a file was written that was there before."""
        return bool(self._removed or self._written)

    def take_written(self) -> set[str]:
        """Return the files that were there before and were written,
        each once as long as the process lives.
        """
        is_complete = len(self._made) < _MAX_ENTRIES
        written = self._written - self._known if is_complete else set[str]()
        self._written = set()
        if len(self._known) < _MAX_ENTRIES:
            self._known |= written
        return {path for path in written if os.path.lexists(path)}

    def take_removed(self) -> dict[str, bool]:
        """Return the removed paths that are not there again and were not made meanwhile;
        whether each was a folder.
        """
        is_complete = len(self._removed) < _MAX_ENTRIES and len(self._made) < _MAX_ENTRIES
        removed, self._removed = self._removed, {}
        self._made.clear()
        return (
            {path: removed[path] for path in removed if not os.path.lexists(path)}
            if is_complete
            else {}
        )


def describe_lost(
    removed: Mapping[str, bool],
    written: Iterable[str],
    roots: Sequence[Path],
    environment: Mapping[str, str],
) -> str:
    """Describe the files and folders among removed and written ones that git ignores; "".

    No snapshot has them.
    """
    gone = _list_ignored(removed, roots, environment)
    kept = dict.fromkeys(written, False)
    texts: list[str] = []
    changed = [
        name
        for name in _list_ignored(kept, roots, environment)
        if not is_made_again(name, is_written=True)
    ]
    for names, deed in ((gone, "removed"), (changed, "changed")):
        if names:
            shown = ", ".join(sorted(names)[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
            count = (
                "1 ignored file or folder was"
                if len(names) == 1
                else f"{len(names)} ignored files and folders were"
            )
            texts.append(f"{count} {deed} and can't be brought back by undo: {shown}.")
    return " ".join(texts)


def _list_ignored(
    removed: Mapping[str, bool], roots: Iterable[Path], environment: Mapping[str, str]
) -> list[str]:
    """Return the names of the files and folders (True) that git ignores,
    and that tools don't make again.
    """
    lost: list[str] = []
    for root in roots:
        below = {
            Path(path).relative_to(root): removed[path]
            for path in removed
            if path.startswith(f"{root}/")
        }
        kept = sorted(path for path in below if not is_made_again(str(path)))
        git = find_git_folder(root) if kept else None
        if git is None:
            continue
        ignored = IgnoredFiles(root, git, (), environment)
        kept = [path for path in kept if _is_ignored(ignored, root, path, is_folder=below[path])]
        tracked = read_tracked_files(root) if kept else {}
        tops: set[Path] = set()
        for path in kept:
            # Of a folder that is named already, nothing more is named.
            if path.parent in tops:
                tops.add(path)
            elif path.name not in tracked.get(
                "" if path.parent == Path() else str(path.parent), {}
            ):
                tops.add(path)
                lost.append(f"{path}/" if below[path] else str(path))
    return lost


def is_made_again(name: str, *, is_written: bool = False) -> bool:
    """Return whether tools make a file or folder (a relative path) from what is there, or,
    if asked, write it often.
    """
    parts = name.strip("/").split("/")
    if any(part in _MADE_AGAIN_NAMES or part.endswith(_MADE_AGAIN_ENDS) for part in parts):
        return True
    return is_written and (
        not _WRITTEN_AGAIN_NAMES.isdisjoint(parts) or parts[-1].endswith(_WRITTEN_AGAIN_ENDS)
    )


def _is_ignored(ignored: IgnoredFiles, root: Path, path: Path, *, is_folder: bool) -> bool:
    """Return whether git ignores a path, or a folder above it."""
    folder = ""
    for part in path.parts:
        ignored.read_folder(
            folder, [".gitignore"] if (root / folder / ".gitignore").is_file() else []
        )
        below = f"{folder}/{part}" if folder else part
        if ignored.is_ignored_entry(folder, part, is_folder=is_folder or below != str(path)):
            return True
        folder = below
    return False
