"""Lists the entries of a folder of the work tree, for clients: which are folders,
and which git ignores.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from codeloop.kit.paths import join_relative
from codeloop.kit.text.undecodable import escape_path
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import FILES_ENTRIES, SEARCH_TIME
from codeloop.workspace.files.safe_open import open_folder
from codeloop.workspace.git.ignore_patterns import Patterns, is_ignored, read_ignore_file
from codeloop.workspace.git.index import open_repository

# The most bytes of an ignore file that are read.
RULES_BYTES = 256 * 1024
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FolderEntry(Struct, frozen=True):
    """An entry of a folder. A link counts as a folder if it leads to one in the work tree,
    else as a file.
    """

    name: str
    is_folder: bool
    is_ignored: bool


def list_folder_entries(root: Path, folder: Path, excludes: Iterable[Path]) -> list[FolderEntry]:
    """Return the entries of a folder of the work tree `root` (both resolved), folders first,
    then by name. Blocks.

    `.git` is left out. `excludes`: the user's own files of patterns for git. Raises FileRefused and
    OSError as `open_folder`, CodeloopError when there is too much.
    """
    path = "" if folder == root else str(folder.relative_to(root))
    folder_entries: list[FolderEntry] = []
    deadline = time.monotonic() + SEARCH_TIME.seconds
    with open_folder(folder) as parent:
        rules, is_all_ignored = read_ignore_rules(root, path, excludes)
        # `open_folder` may give a descriptor that is only a path, which can't be listed.
        fd = os.open(".", _FOLDER_FLAGS, dir_fd=parent)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    if entry.name == ".git":
                        continue
                    if len(folder_entries) >= FILES_ENTRIES.value:
                        count = f"more than {FILES_ENTRIES.value:,} entries"
                        raise CodeloopError(
                            f"{escape_path(str(folder))} has {count}. Look for a name with /find/file."
                        )
                    if time.monotonic() > deadline:
                        raise CodeloopError(
                            f"{escape_path(str(folder))} can't be listed in {SEARCH_TIME.seconds:g} s."
                        )
                    is_folder = _is_folder(root, folder, entry)
                    ignored = is_all_ignored or is_ignored(
                        rules, join_relative(path, entry.name), entry.name, is_folder=is_folder
                    )
                    folder_entries.append(FolderEntry(entry.name, is_folder, ignored))
        finally:
            os.close(fd)
    return sorted(folder_entries, key=lambda entry: (not entry.is_folder, entry.name))


def _is_folder(root: Path, folder: Path, entry: "os.DirEntry[str]") -> bool:
    if not entry.is_symlink():
        return entry.is_dir(follow_symlinks=False)
    real = Path(os.path.realpath(folder / entry.name))
    return real.is_relative_to(root) and real.is_dir()


def read_ignore_rules(
    root: Path, path: str, excludes: Iterable[Path]
) -> tuple[tuple[Patterns, ...], bool]:
    """Return the patterns that apply in a folder, the nearest first,
    and whether the folder itself is ignored.
    """
    rules = tuple(read_ignore_file(file, "", RULES_BYTES) for file in excludes)
    repository = open_repository(root, with_index=False)
    if repository is not None:
        rules = (read_ignore_file(repository.common / "info" / "exclude", "", RULES_BYTES), *rules)
    current = ""
    for name in ("", *(path.split("/") if path else ())):
        if name:
            current = join_relative(current, name)
            if is_ignored(rules, current, name, is_folder=True):
                return rules, True
        own_rules = read_ignore_file(root / current / ".gitignore", current, RULES_BYTES)
        rules = (own_rules, *rules) if own_rules.lines else rules
    return rules, False
