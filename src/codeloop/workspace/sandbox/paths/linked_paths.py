"""Resolves the links in paths, and compares paths with folders. Reads the disk."""

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

# The most steps from folder to folder in resolving one path: links may form a circle.
_MAX_LINK_STEPS = 200


def resolve_links(path: Path) -> Path:
    """Return a path with all links resolved."""
    return Path(os.path.realpath(path))


def exists(path: Path) -> bool:
    """Return whether a path, with its links followed, leads to something."""
    return os.access(path, os.F_OK)


def find_kind(path: Path) -> int:
    """Return the bits of a mode that tell what a path leads to (`stat.S_IFMT`), links followed;
    0: nothing, or we may not look. `Path.is_dir` and the like raise an error for the latter.
    """
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError):
        return 0


def is_folder(path: Path) -> bool:
    """Return whether a path, with its links followed, leads to a folder that we see."""
    return find_kind(path) == stat.S_IFDIR


def keep_outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that lie below none of the others, sorted."""
    outermost: list[Path] = []
    for path in sorted(paths):
        if not outermost or not path.is_relative_to(outermost[-1]):
            outermost.append(path)
    return outermost


def is_below_any(path: Path, folders: Iterable[Path]) -> bool:
    """Return whether an absolute path is one of the folders or lies below one.

    It compares texts: that is a tenth of the cost of `is_relative_to`,
    and each command compares some dozens.
    """
    text = f"{path}/"
    return any(text.startswith(f"{folder}/" if folder.name else "/") for folder in folders)


def list_outside(paths: Iterable[Path], folders: Iterable[Path]) -> list[Path]:
    """Return the absolute paths that are none of the folders and lie below none of them;
    compares texts.
    """
    starts = tuple(f"{folder}/" if folder.name else "/" for folder in folders)
    return [path for path in paths if not f"{path}/".startswith(starts)]


class LinkTracer:
    """Resolves paths, and records in `links` each link in a replaced folder,
    which the sandbox has to recreate there.

    A replaced folder looks empty in the sandbox, as the home does. `roots`: the project's folders,
    in which commands can make links to anywhere.
    """

    def __init__(self, replaced_folders: Iterable[Path], roots: Sequence[Path]) -> None:
        self.replaced_folders = list(replaced_folders)
        self.links: dict[Path, str] = {}
        self._roots = roots

    def resolve(self, path: Path) -> Path | None:
        """Resolve a path; None if a link in the project leads out of the project."""
        resolved = resolve_links(path)
        if resolved == path:
            return resolved
        # The result is known; the walk only finds the links on the way to it.
        folder, remaining_parts = Path("/"), list(path.parts[1:])
        for _ in range(_MAX_LINK_STEPS):
            if not remaining_parts:
                break
            part = remaining_parts.pop(0)
            step = folder.parent if part == ".." else folder / part
            target = ""
            with suppress(OSError):
                target = str(step.readlink())
            if not target:
                folder = step
                continue
            if is_below_any(step, self._roots) and not is_below_any(resolved, self._roots):
                return None
            if is_below_any(step, self.replaced_folders):
                self.links[step] = target
            target_parts = [each for each in target.split("/") if each not in {"", "."}]
            folder = Path("/") if target.startswith("/") else folder
            remaining_parts = [*target_parts, *remaining_parts]
        return resolved


def leads_out_of_project(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether a path leads out of the project by a link in it."""
    return LinkTracer((), roots).resolve(path) is None
