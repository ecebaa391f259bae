"""What files and folders of a project appear and go while commands run, by the events of its watched folders."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from codeloop.kit.git import find_git_folder
from codeloop.workspace.git.index import read_tracked_files
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.inotify import CREATED_BIT, DELETED_BIT, FOLDER_BIT

# Of more entries it is not said what was removed.
_MAX_ENTRIES = 20_000
_NAMED = 5
# What tools make again from what is there.
_MADE_AGAIN_NAMES = frozenset(
    ("__pycache__", "build", "dist", "out", "target", "coverage", "htmlcov", ".coverage", ".next", ".nuxt", ".turbo")
)
_MADE_AGAIN_ENDS = (
    *(".pyc", ".pyo", ".o", ".a", ".so", ".obj", ".class", ".log", ".tmp", ".swp", ".lock", ".pid", "~"),
    *("_cache", ".cache", ".egg-info"),
)


class EntryChanges:
    """Collects the events. `ignore_files`: the `.gitignore` files that have changed."""

    def __init__(self) -> None:
        self.ignore_files: set[str] = set()
        self._made: set[str] = set()
        # Each with whether it was a folder.
        self._removed: dict[str, bool] = {}

    def clear(self) -> None:
        """Forget all."""
        self.ignore_files.clear()
        self._made.clear()
        self._removed.clear()

    def note_event(self, path: str, name: str, mask: int) -> None:
        """Take note of an event. `mask`: the kernel's bits."""
        if name == ".gitignore":
            self.ignore_files.add(path)
        if mask & DELETED_BIT:
            if path in self._made:
                self._made.discard(path)
            # Of what is made in a new folder, before it is watched, no event tells.
            elif self._made and not self._made.isdisjoint(map(str, Path(path).parents)):
                pass
            elif len(self._removed) < _MAX_ENTRIES:
                self._removed[path] = bool(mask & FOLDER_BIT)
        elif mask & CREATED_BIT and path not in self._removed and len(self._made) < _MAX_ENTRIES:
            self._made.add(path)

    @property
    def has_removals(self) -> bool:
        """Whether something was removed."""
        return bool(self._removed)

    def take_removed(self) -> dict[str, bool]:
        """Return the removed paths that are not there again and were not made meanwhile; whether each was a folder."""
        is_complete = len(self._removed) < _MAX_ENTRIES and len(self._made) < _MAX_ENTRIES
        removed, self._removed = self._removed, {}
        self._made.clear()
        return {path: removed[path] for path in removed if not os.path.lexists(path)} if is_complete else {}


def describe_lost(removed: Mapping[str, bool], roots: Iterable[Path], environment: Mapping[str, str]) -> str:
    """Describe the files and folders among removed ones that git ignored, so that no snapshot has them; ""."""
    lost: list[str] = []
    for root in roots:
        below = {Path(path).relative_to(root): removed[path] for path in removed if path.startswith(f"{root}/")}
        kept = sorted(path for path in below if not _is_made_again(path))
        git = find_git_folder(root) if kept else None
        if git is None:
            continue
        ignored, tracked = IgnoredFiles(root, git, (), environment), read_tracked_files(root)
        tops: set[Path] = set()
        for path in kept:
            # Of a folder that is named already, nothing more is named.
            if path.parent in tops:
                tops.add(path)
            elif path.name not in tracked.get("" if path.parent == Path() else str(path.parent), {}) and _is_ignored(
                ignored, root, path, is_folder=below[path]
            ):
                tops.add(path)
                lost.append(f"{path}/" if below[path] else str(path))
    if not lost:
        return ""
    named = ", ".join(sorted(lost)[:_NAMED]) + (" ..." if len(lost) > _NAMED else "")
    count = "1 ignored file or folder was" if len(lost) == 1 else f"{len(lost)} ignored files and folders were"
    return f"{count} removed and can't be brought back by undo: {named}."


def _is_made_again(path: Path) -> bool:
    return any(part in _MADE_AGAIN_NAMES or part.endswith(_MADE_AGAIN_ENDS) for part in path.parts)


def _is_ignored(ignored: IgnoredFiles, root: Path, path: Path, *, is_folder: bool) -> bool:
    """Return whether git ignores a path, or a folder above it."""
    folder = ""
    for part in path.parts:
        ignored.read_folder(folder, [".gitignore"] if (root / folder / ".gitignore").is_file() else [])
        below = f"{folder}/{part}" if folder else part
        if ignored.is_ignored_entry(folder, part, is_folder=is_folder or below != str(path)):
            return True
        folder = below
    return False
