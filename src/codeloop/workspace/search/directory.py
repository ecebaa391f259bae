"""The entries of a folder, and which of them git ignores."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import FILES_ENTRIES, SEARCH_TIME
from codeloop.workspace.files.safe_open import open_folder
from codeloop.workspace.git.ignore_patterns import Patterns, is_ignored, parse
from codeloop.workspace.git.index import open_repository, read_small
from codeloop.workspace.search.ripgrep import printable
from codeloop.workspace.snapshot.stat_cache import join

_RULES = 256 * 1024
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class DirectoryEntry(Struct, frozen=True):
    """An entry of a folder. A link counts as a folder when it leads to one in the work tree, else as a file."""

    name: str
    is_folder: bool
    ignored: bool


def entries(root: Path, folder: Path, excludes: Iterable[Path]) -> list[DirectoryEntry]:
    """Return the entries of a folder of the work tree `root` (both resolved), folders first, then by name. Blocks.

    `.git` is left out. `excludes`: the user's own files of patterns for git. Raises FileRefused and OSError as
    `open_folder`, CodeloopError when there is too much.
    """
    path = "" if folder == root else str(folder.relative_to(root))
    directory_entries: list[DirectoryEntry] = []
    deadline = time.monotonic() + SEARCH_TIME.seconds
    with open_folder(folder) as parent:
        rules, is_all_ignored = _read_rules(root, path, excludes)
        fd = os.open(".", _READ, dir_fd=parent)
        try:
            with os.scandir(fd) as rows:
                for row in rows:
                    if row.name == ".git":
                        continue
                    if len(directory_entries) >= FILES_ENTRIES.value:
                        most = f"more than {FILES_ENTRIES.value:,} entries"
                        raise CodeloopError(f"{printable(str(folder))} has {most}. Look for a name with /find/file.")
                    if time.monotonic() > deadline:
                        raise CodeloopError(f"{printable(str(folder))} can't be listed in {SEARCH_TIME.seconds:g} s.")
                    is_folder = _is_folder(root, folder, row)
                    ignored = is_all_ignored or is_ignored(rules, join(path, row.name), row.name, is_folder=is_folder)
                    directory_entries.append(DirectoryEntry(row.name, is_folder, ignored))
        finally:
            os.close(fd)
    return sorted(directory_entries, key=lambda entry: (not entry.is_folder, entry.name))


def _is_folder(root: Path, folder: Path, row: "os.DirEntry[str]") -> bool:
    if not row.is_symlink():
        return row.is_dir(follow_symlinks=False)
    real = Path(os.path.realpath(folder / row.name))
    return real.is_relative_to(root) and real.is_dir()


def _read_rules(root: Path, path: str, excludes: Iterable[Path]) -> tuple[tuple[Patterns, ...], bool]:
    """Return the patterns that hold in a folder, the nearest first, and whether the folder itself is ignored."""
    chain = tuple(parse(read_small(file, _RULES), "") for file in excludes)
    repository = open_repository(root, with_index=False)
    if repository is not None:
        chain = (parse(read_small(repository.common / "info" / "exclude", _RULES), ""), *chain)
    here = ""
    for name in ("", *(path.split("/") if path else ())):
        if name:
            here = join(here, name)
            if is_ignored(chain, here, name, is_folder=True):
                return chain, True
        own = parse(read_small(root / here / ".gitignore", _RULES), here)
        chain = (own, *chain) if own.lines else chain
    return chain, False
