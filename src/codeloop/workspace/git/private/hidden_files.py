"""What commands see of tracked files that they may not read: an index that tells git to leave
these alone, and objects without their contents.
"""

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git.settings import read_file_settings
from codeloop.kit.remove_tree import temporary_folder
from codeloop.kit.small_files import read_start_or_empty
from codeloop.workspace.files.path_states import PathStates
from codeloop.workspace.git.planted.layout import read_pointer
from codeloop.workspace.git.private.names import SHARED_INDEX_PREFIX, read_index
from codeloop.workspace.git.private.own_git import ReadingGit, open_reading_git
from codeloop.workspace.git.private.units import Unit, list_units

_INDEX_BYTES = 1024 * 1024 * 1024


class HiddenFiles(NamedTuple):
    """The hidden files and folders of one work tree that git has.

    `folder`: the real git folder of the work tree; `names`: their paths below the work tree's top;
    `paths`: the same, absolute.
    """

    folder: Path
    names: tuple[str, ...]
    paths: tuple[Path, ...]

    def mark(self, data: bytes) -> bytes:
        """Return an index in which git takes the hidden files for unchanged, whatever it sees of
        them. Raises OSError.
        """
        tracked, marked = self._read_entries(data)
        return self._change_index(data, sorted(tracked - marked), "--skip-worktree")

    def unmark(self, data: bytes, real: bytes) -> bytes:
        """Return an index without the marks that `mark` has made. `real`: the one that
        was marked. Raises OSError.
        """
        tracked, marked = self._read_entries(data)
        paths = tracked & marked
        if paths and real:
            paths -= self._read_entries(real)[1]
        return self._change_index(data, sorted(paths), "--no-skip-worktree")

    def holds(self, path: bytes) -> bool:
        """Return whether a path in the work tree is one of these, or lies in one."""
        names = tuple(map(os.fsencode, self.names))
        return path in names or path.startswith(tuple(name + b"/" for name in names))

    def _read_entries(self, data: bytes) -> tuple[set[bytes], set[bytes]]:
        """Return the hidden files that an index names, and all files that git does not compare
        with it; nothing of what is not an index. Git marks none that are in conflict.
        """
        try:
            content = read_index(data)
        except (ValueError, IndexError):
            return set(), set()
        if content.is_split:
            # The other file has the rest.
            with self._open_index(data) as (git, variables):
                rows = git.run(("ls-files", "-v", "-z"), variables=variables).split(b"\0")
            paths = [row[2:] for row in rows if row[:1] not in b"Mm"]
            marked = {row[2:] for row in rows if row[:1] == b"S" or row[:1].islower()}
        else:
            paths, marked = set(content.paths) - content.unmerged, set(content.hidden)
        names = tuple(map(os.fsencode, self.names))
        folders = tuple(name + b"/" for name in names)
        return {path for path in paths if path in names or path.startswith(folders)}, marked

    def _change_index(self, data: bytes, paths: Sequence[bytes], option: str) -> bytes:
        if not paths:
            return data
        rows = b"".join(path + b"\0" for path in paths)
        with self._open_index(data) as (git, variables):
            git.run(("update-index", "-z", option, "--stdin"), rows, variables)
            return Path(variables["GIT_INDEX_FILE"]).read_bytes()

    @contextmanager
    def _open_index(self, data: bytes) -> Generator[tuple[ReadingGit, dict[str, str]]]:
        """Yield git, and the variables that lead it to a copy of an index."""
        with (
            temporary_folder("codeloop-index-") as folder,
            open_reading_git(self.folder) as git,
        ):
            index = folder / "index"
            index.write_bytes(data)
            yield git, {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder)}


def find_hidden_files(
    real: Path, roots: Sequence[Path], hidden: Iterable[Path]
) -> tuple[PathStates, tuple[Path, ...]]:
    """Return the hidden files and folders that an index of a git folder names, and the states of
    what they were read from.
    """
    units = [unit for unit in list_units(real, roots) if unit.has_tree]
    indexes = [
        path
        for unit in units
        for path in (
            real / unit.path / "index",
            *(real / unit.path).glob(f"{SHARED_INDEX_PREFIX}*"),
        )
    ]
    states = PathStates(map(str, indexes))
    found: set[Path] = set()
    for unit in units:
        names = list_names(real, unit, hidden)
        for index in indexes if names else ():
            data = (
                read_start_or_empty(index, _INDEX_BYTES)
                if index.parent == real / unit.path
                else b""
            )
            found |= {path for path, name in names.items() if _may_name(data, os.fsencode(name))}
    return states, tuple(sorted(found))


def list_names(real: Path, unit: Unit, hidden: Iterable[Path]) -> dict[Path, str]:
    """Return the hidden paths in the work tree of a git folder, with their paths below its top."""
    tree = _find_tree(real, unit) if unit.has_tree else None
    return (
        {path: str(path.relative_to(tree)) for path in hidden if path.is_relative_to(tree)}
        if tree is not None
        else {}
    )


def _find_tree(real: Path, unit: Unit) -> Path | None:
    """Return the top of a git folder's work tree, or None."""
    folder = real / unit.path
    if not unit.is_main:
        pointer = read_pointer(folder / "gitdir")
        return pointer.parent if pointer is not None else None
    trees = [
        setting.value
        for setting in read_file_settings(folder / "config")
        if setting.name == "core.worktree"
    ]
    if trees:
        return Path(os.path.realpath(folder / trees[-1]))
    return folder.parent if folder.name == ".git" else None


def _may_name(data: bytes, name: bytes) -> bool:
    """Return whether an index may name a file, or files in a folder."""
    if data[4:8] == b"\0\0\0\4":
        # There a path is shortened to what differs from the one before.
        try:
            paths = read_index(data).paths
        except (ValueError, IndexError):
            return True
        return any(path == name or path.startswith(name + b"/") for path in paths)
    return name + b"\0" in data or name + b"/" in data
