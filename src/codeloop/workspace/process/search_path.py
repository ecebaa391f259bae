"""Looks up programs on the PATH, and says why one may not be what its name says."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.workspace.process.folder_writers import find_foreign_writer

_LOADING = ("LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_")


_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE")
_STEERING_VARIABLES = {
    "file": ("MAGIC",),
    "git": ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH", "XDG_CONFIG_HOME"),
    "pip": _PYTHON,
    "pip3": _PYTHON,
    "rg": ("RIPGREP_CONFIG_PATH",),
}
"""Variables from which programs take options or code."""


class ProgramLookup(Struct, frozen=True):
    """Where a program is found, and why it may not be the expected one (`doubt`; "": it is).

    `is_behind`: a folder of the project comes before it on the PATH, where a program of that name could appear.
    """

    path: str = ""
    doubt: str = ""
    is_behind: bool = False


class SearchPath:
    """The folders of a PATH, looked at once. `roots`: the resolved folders that an agent may write to."""

    def __init__(self, environment: Mapping[str, str], roots: Sequence[str]) -> None:
        self._environment = environment
        self._folders = environment.get("PATH", "").split(os.pathsep)
        self._roots = roots
        self._doubts: dict[str, str] = {}

    def find(self, name: str) -> ProgramLookup:
        """Find a program as a shell does; one that is named by its path is there, if at all.

        A folder of the PATH that anybody could put a program into makes every name behind it uncertain; one of the
        project's (an environment that is activated) makes those uncertain that are in it.
        """
        above, _, name = name.rpartition("/")
        for variable in _STEERING_VARIABLES.get(name, ()):
            if _leads_inside(self._environment.get(variable, ""), self._roots):
                return ProgramLookup(doubt=f"{variable} has `{name}` load what lies in the project")
        is_behind = False
        for folder in [above] if above else self._folders:
            path = f"{folder}/{name}"
            if _is_inside(folder, self._roots) or _is_inside(os.path.realpath(folder), self._roots):
                if os.path.lexists(path):
                    return ProgramLookup(doubt=f"`{name}` on the PATH leads into the project")
                is_behind = True
                continue
            if folder not in self._doubts:
                self._doubts[folder] = _find_doubt(folder)
            if doubt := self._doubts[folder]:
                return ProgramLookup(doubt=f"{doubt}, where another `{name}` could be")
            if os.access(path, os.X_OK) and not Path(path).is_dir():
                if _is_inside(os.path.realpath(path), self._roots):
                    return ProgramLookup(doubt=f"`{name}` on the PATH leads into the project")
                return ProgramLookup(path, is_behind=is_behind)
        return ProgramLookup(doubt=f"`{name}` is not installed")


def loads_from_project(environment: Mapping[str, str], roots: Sequence[str]) -> str:
    """Return a variable that makes programs load code from the project or the current directory; "": none."""
    for name, value in environment.items():
        if name.startswith(_LOADING) and _leads_inside(value, roots):
            return name
    return ""


def _leads_inside(value: str, roots: Sequence[str]) -> bool:
    """Return whether a variable's paths lead into the project or the current directory."""
    parts = value.replace(" ", ":").split(":") if value else []
    return any(not part.startswith("/") or _is_inside(os.path.realpath(part), roots) for part in parts)


def _find_doubt(folder: str) -> str:
    """Return why a folder of the PATH can't be trusted."""
    if not folder.startswith("/"):
        return "the PATH has a relative folder"
    writer = find_foreign_writer(folder)
    return f"{writer} can write to {folder} on the PATH" if writer else ""


def _is_inside(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
