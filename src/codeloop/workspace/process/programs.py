"""What runs by a program's bare name: found on the PATH, where nothing of the project can stand in for it."""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

_LOADING = ("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_")


class FoundProgram(Struct, frozen=True):
    """Where a bare name is found, and why that may not be the program of that name ("": it is)."""

    path: str = ""
    doubt: str = ""


class SearchPath:
    """The folders of a PATH, looked at once. `roots`: the resolved folders that an agent may write to."""

    def __init__(self, environment: Mapping[str, str], roots: Sequence[str]) -> None:
        self._folders = environment.get("PATH", "").split(os.pathsep)
        self._roots = roots
        self._doubts: dict[str, str] = {}

    def find(self, name: str) -> FoundProgram:
        """Find a program as a shell does.

        A folder of the PATH that a command could put a program into makes every name behind it uncertain.
        """
        for folder in self._folders:
            if folder not in self._doubts:
                self._doubts[folder] = _doubt_about(folder, self._roots)
            if doubt := self._doubts[folder]:
                return FoundProgram(doubt=f"{doubt}, where another `{name}` could be")
            path = f"{folder}/{name}"
            if os.access(path, os.X_OK) and not Path(path).is_dir():
                if _is_inside(os.path.realpath(path), self._roots):
                    return FoundProgram(doubt=f"`{name}` on the PATH leads into the project")
                return FoundProgram(path)
        return FoundProgram(doubt=f"`{name}` is not installed")


def loads_from_project(environment: Mapping[str, str], roots: Sequence[str]) -> str:
    """Return the variable by which programs load code from the project, or from wherever they run; "": none."""
    for name, value in environment.items():
        if name.startswith(_LOADING) and value:
            parts = value.replace(" ", ":").split(":")
            if any(not part.startswith("/") or _is_inside(os.path.realpath(part), roots) for part in parts):
                return name
    return ""


def _doubt_about(folder: str, roots: Sequence[str]) -> str:
    """Return why a folder of the PATH can't be relied on."""
    if not folder.startswith("/"):
        return "the PATH has a relative folder"
    real = os.path.realpath(folder)
    if _is_inside(folder, roots) or _is_inside(real, roots):
        return "the PATH leads into the project"
    place = real
    while True:
        try:
            mode = Path(place).stat().st_mode
        except OSError:  # it is not there, so nothing is found in it
            return ""
        if mode & stat.S_IWOTH:
            return f"anybody can write to {folder} on the PATH"
        if place == "/":
            return ""
        place = place.rpartition("/")[0] or "/"


def _is_inside(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
