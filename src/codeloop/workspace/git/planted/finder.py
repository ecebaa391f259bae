"""Finds the repositories below a project: one walk, then only the folders that have changed."""

import os
from collections.abc import Sequence
from pathlib import Path

from codeloop.kit.guarded_paths import fold
from codeloop.schema.bounds.sandbox import PLANTED_FOLDERS, PLANTED_NEW
from codeloop.workspace.sandbox.locations import SKIPPED
from codeloop.workspace.snapshot.inotify import Watch

_GIT = ".git"


class RepositoryFinder:
    """Knows each `.git`, and each folder that git would take for a bare repository, below some folders."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = [str(root) for root in roots]
        self._below: dict[str, set[str]] = {}
        self._found: dict[str, list[str]] = {}
        self._watch: Watch | None = None
        self.left = ""
        """A folder that was made since the last look and not searched, because there were too many."""

    def look(self) -> set[Path]:
        """Return every `.git` and every bare repository that is there now.

        Of a large project, those in the folders nearest its top, and all that came after the first look. When too many
        changes were lost to tell where, the whole project is walked: that may find older ones, too.
        """
        changed: set[str] | None = self._watch.take_changed() if self._watch is not None else None
        self.left = ""
        if changed is None:
            self._begin()
            self._walk(list(self._roots), PLANTED_FOLDERS.value)
            self.left = ""
        elif self._watch is not None and self._watch.broken:
            self._begin()
            self._walk(list(self._roots), PLANTED_NEW.value)
        else:
            self._walk([folder for folder in changed if folder in self._below], PLANTED_NEW.value)
        return {Path(path) for paths in self._found.values() for path in paths if os.path.lexists(path)}

    @property
    def is_same(self) -> bool:
        """Whether nothing has happened since the last look began."""
        return self._watch is not None and not self._watch.broken and not self._watch.has_news

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _begin(self) -> None:
        self.close()
        self._below.clear()
        self._found.clear()
        try:
            self._watch = Watch()
        except OSError:
            self._watch = None  # then each look is a walk

    def _walk(self, waiting: list[str], most: int) -> None:
        for folder in waiting:
            self._add(folder)
            try:
                with os.scandir(folder) as entries:
                    rows = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            except OSError:
                self._below.pop(folder, None)
                self._found.pop(folder, None)
                continue
            names = {name for name, _ in rows}
            if is_bare(names):
                self._found[folder] = [folder]
                continue
            self._found[folder] = [f"{folder}/{name}" for name in names if fold(name) == _GIT]
            below = {f"{folder}/{name}" for name, is_folder in rows if is_folder and name not in SKIPPED}
            below -= set(self._found[folder])
            known = self._below.get(folder, set())
            self._below[folder] = below
            new = sorted(below - known)
            room = max(most - len(waiting), 0)
            waiting += new[:room]
            self.left = self.left or "".join(new[room : room + 1])

    def _add(self, folder: str) -> None:
        if self._watch is not None and not self._watch.has(folder):
            try:
                self._watch.add(folder, folder)
            except OSError:
                self.close()  # no more can be watched: then each look is a walk


def is_bare(names: set[str]) -> bool:
    """Return whether a folder with these names is a git directory, of its own or of another work tree."""
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)
