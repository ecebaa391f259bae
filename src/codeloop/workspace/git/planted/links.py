"""Links in a git directory through which git would write or read elsewhere."""

import os
from pathlib import Path

from codeloop.schema.bounds.sandbox import PLANTED_LINKS

LINKED = ("logs", "refs", "info", "objects")
"""The folders of a git directory whose links git would follow when it writes."""


def find_links_out(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the links in a git directory that lead out of it, where git would write or read through them.

    And the folders that were read for that.
    """
    found: list[Path] = []
    waiting, count = [str(folder)], 0
    for each in waiting:
        try:
            with os.scandir(each) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_symlink():
                        found += [] if _is_below(entry.path, folder) else [Path(entry.path)]
                    elif entry.is_dir(follow_symlinks=False) and _is_linked(entry, each, folder):
                        waiting.append(entry.path)
        except OSError:
            continue
        if count > PLANTED_LINKS.value:
            break
    return found, waiting


def _is_below(path: str, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(folder)


def _is_linked(entry: os.DirEntry[str], above: str, folder: Path) -> bool:
    if above == str(folder):
        return entry.name in LINKED
    return not above.startswith(f"{folder}/objects") or entry.name in {"info", "pack"}
