"""Finds what a command wrote to its private home that the user would expect in the real one."""

import os
from collections.abc import Iterator
from pathlib import Path

from codeloop.schema.bounds.sandbox import SANDBOX_STRAYED
from codeloop.schema.limits import SANDBOX_BLOCKED
from codeloop.workspace.sandbox.paths.home_paths import CACHES

# Levels of folders in the private home that are searched for files which the user would miss.
_STRAYED_LEVELS = 50
_WRITE_HINT = (
    "To write there, name the path in the command itself, or use `outside` with the reason."
)


def find_strayed_writes(home: Path, since: int) -> list[str]:
    """Return a note if a command wrote a file to the private home that the user
    would expect in the real one.

    `since`: a file modification time, in ns. Names with a leading dot, which tools write,
    are ignored.
    """
    names = list_strayed(home, since)
    if not names:
        return []
    paths_shown = ", ".join(f"~/{each}" for each in names[: SANDBOX_BLOCKED.value])
    return [
        f"blocked: write to {paths_shown} in the user's home: only sandboxed commands see it. {_WRITE_HINT}"
    ]


def list_strayed(home: Path, since: int) -> list[str]:
    """Return the files written to a private home since then, as paths below it, sorted."""
    newer_files = _find_newer_files(
        str(home), since, iter(range(SANDBOX_STRAYED.value)), _STRAYED_LEVELS
    )
    names = (os.path.relpath(path, home) for path in sorted(newer_files))
    return [each for each in names if not _is_cache(each)]


def _is_cache(name: str) -> bool:
    """Return whether a path of the home is a tool's cache (`go/pkg`), lies in one,
    or only leads to one.
    """
    return any(
        f"{name}/".startswith(f"{row.folder}/") or row.folder.startswith(f"{name}/")
        for row in CACHES
    )


def _find_newer_files(
    folder: str, since: int, entries_left: Iterator[int], levels: int
) -> Iterator[str]:
    """Yield the files below a folder that are newer than `since`,
    and newer folders that contain no newer file.

    `entries_left`: an iterator with one item for each entry that may still be read;
    `levels`: of folders to be read.
    """
    try:
        with os.scandir(folder) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(".")]
            states = [(entry, entry.stat(follow_symlinks=False)) for entry in visible]
    except OSError:
        return
    # The second iterator bounds the loop: each round uses up one of its items.
    for (entry, state), _ in zip(states, entries_left, strict=False):
        is_read = levels > 1 and entry.is_dir(follow_symlinks=False)
        below = (
            list(_find_newer_files(entry.path, since, entries_left, levels - 1)) if is_read else []
        )
        yield from below
        if state.st_mtime_ns > since and not below:
            yield entry.path
