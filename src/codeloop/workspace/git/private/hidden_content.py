"""Keeps what tracked files hold, and held in earlier commits, from commands that may not read them:
for one private git folder.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from codeloop.schema.bounds.sandbox import FILTERED_OBJECTS
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.private.hidden_files import HiddenFiles, list_names
from codeloop.workspace.git.private.names import INDEX_FILE, CarriedFile, read_index
from codeloop.workspace.git.private.open_folder import OpenFolder
from codeloop.workspace.git.private.shown_objects import ShownObjects
from codeloop.workspace.git.private.units import Unit, list_watched

OBJECTS_NAME = "git-objects"
"""The folder in a private folder that holds objects without those of hidden files."""


class HiddenContent:
    """The hidden files of the work trees of a real git folder, and its objects without their
    contents. `place`: our folder for it, above which they are.
    """

    def __init__(self, real: Path, place: Path, hidden: Sequence[Path]) -> None:
        self._real = real
        self._folder = place.parent.with_name(OBJECTS_NAME)
        self._hidden = hidden
        self._files: dict[str, HiddenFiles] = {}
        self._objects: dict[str, ShownObjects] = {}
        self._states: PathStates | None = None
        self._notes: set[str] = set()
        self.unmerged: tuple[Path, ...] = ()
        """The hidden files that are in conflict, and there."""

    def refresh(self, real: OpenFolder, units: Iterable[Unit]) -> list[str]:
        """Add what the real folder has now. Returns notes on what can't be kept from commands, or
        shown to them.
        """
        if self._states is not None and self._states.are_unchanged():
            return []
        units = tuple(units)
        watched = (path for unit in units for path in list_watched(real, unit, is_private=False))
        states = PathStates(f"{real.path}/{path}" for path in watched)
        self._files = {
            unit.path: HiddenFiles(self._real / unit.path, tuple(names.values()), tuple(names))
            for unit in units
            if (names := list_names(self._real, unit, self._hidden))
        }
        self.unmerged = tuple(
            path for unit in self._files for path in self._list_unmerged(unit) if path.is_file()
        )
        notes: list[str] = []
        for unit in units:
            if unit.is_main:
                notes += self._refresh_objects(unit)
        self._states = states
        new = [note for note in notes if note not in self._notes]
        self._notes |= set(new)
        return new

    def find_objects(self, unit: str) -> Path | None:
        """Return the folder with the objects of a git folder that commands see;
        None: the real one.
        """
        shown = self._objects.get(unit)
        return shown.folder if shown is not None else None

    def make_index_file(self, unit: str) -> CarriedFile:
        """Return how the index of a git folder is carried."""
        files = self._files.get(unit)
        if files is None:
            return INDEX_FILE
        return INDEX_FILE._replace(mark=files.mark, unmark=files.unmark)

    def _list_unmerged(self, unit: str) -> Iterator[Path]:
        """Yield the hidden files that are in conflict in the index of a git folder."""
        files = self._files[unit]
        try:
            content = read_index((files.folder / "index").read_bytes())
        except (OSError, ValueError, IndexError):
            return
        for path, name in zip(files.paths, files.names, strict=True):
            for each in map(os.fsdecode, content.unmerged):
                if each == name or each.startswith(f"{name}/"):
                    yield path / each.removeprefix(name).lstrip("/")

    def _refresh_objects(self, unit: Unit) -> list[str]:
        trees = f"{unit.path}worktrees/"
        files = [
            each
            for path, each in self._files.items()
            if path == unit.path or path.startswith(trees)
        ]
        self._objects.pop(unit.path, None)
        if not files:
            return []
        real = self._real / unit.path
        if _measure_packs(real) > FILTERED_OBJECTS.value:
            names = ", ".join(sorted({name for each in files for name in each.names})[:3])
            size = FILTERED_OBJECTS.value / 1_000_000_000
            return [
                f"{real} has more than {size:g} GB of objects, so commands can read there what {names} held in commits"
            ]
        key = "\0".join((str(real), *(f"{each.folder}\0{each.names}" for each in files)))
        name = hashlib.blake2b(os.fsencode(key), digest_size=8).hexdigest()
        shown = self._objects[unit.path] = ShownObjects(real, self._folder / name, files)
        try:
            shown.refresh()
        except OSError as error:
            return [f"commands don't see all objects of {real}: {error.strerror or error}"]
        return []


def _measure_packs(real: Path) -> int:
    return sum(path.stat().st_size for path in (real / "objects/pack").glob("*.pack"))
