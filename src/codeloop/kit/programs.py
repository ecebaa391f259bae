"""Finds programs on the PATH safely.

`find_program` passes over the folders that commands of the agent can write to, so that no project
can plant a program that codeloop would run. Excluded folders are those of the whole process.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

PROJECT_PROGRAM_FOLDERS = (".venv/bin", "venv/bin", "env/bin", "node_modules/.bin", "vendor/bin")
"""Folders in which projects keep their own programs."""

_excluded_folders: set[str] = set()
"""Real paths of the folders that commands of the agent can write to. When a project's virtual
environment is active, its `.venv/bin` is first on the PATH, and a command could put a `git` there.
"""


def exclude_folder(folder: Path) -> None:
    """Exclude the programs in this folder and below it from `find_program` from now on.

    A folder that contains the home directory is not excluded,
    since it also contains the user's own programs.
    """
    real = os.path.realpath(folder)
    if not f"{os.path.realpath(Path.home())}/".startswith(f"{real.rstrip('/')}/"):
        _excluded_folders.add(real)


def exclude_project_folders(directory: Path) -> None:
    """Exclude the programs of a directory and of the work trees around it."""
    for folder in (directory, *directory.parents):
        if folder == directory or os.path.lexists(folder / ".git"):
            exclude_folder(folder)


def is_excluded(folder: str) -> bool:
    """Return whether the programs of a folder, given by its absolute path, are excluded."""
    names = (folder, _resolve_folder(folder))
    return any(
        name == each or name.startswith(f"{each}/") for name in names for each in _excluded_folders
    )


@lru_cache(maxsize=256)
def _resolve_folder(folder: str) -> str:
    # The cache stays valid: commands can only change links in folders that are
    # excluded by name already.
    return os.path.realpath(folder)


def find_program(name: str, path: str | None, *, in_project: bool = False) -> str | None:
    """Return the path of a program in the folders of a PATH, without relative ones;
    None if there is none.

    `in_project`: look in excluded folders as well,
    for a program that runs in a sandbox or is only shown.
    """
    for folder in (path or os.defpath).split(os.pathsep):
        candidate = f"{folder}/{name}"
        if (
            not candidate.startswith("/")
            or not os.access(candidate, os.X_OK)
            or Path(candidate).is_dir()
        ):
            continue
        if in_project or not (
            is_excluded(folder) or is_excluded(str(Path(candidate).resolve().parent))
        ):
            return candidate
    return None


def make_child_environment(environment: Mapping[str, str], directory: Path | str) -> dict[str, str]:
    """Return the environment of a program that is started in a directory: PWD is that directory.

    Without it the program inherits the PWD of this process, and some (OpenCode,
    scripts of asdf) work there instead.
    """
    folder = os.fspath(directory)
    # PWD may name a directory by links, but not by `..`.
    if not folder.startswith("/") or "/.." in folder:
        folder = os.path.realpath(folder)
    return {**environment, "PWD": folder}


def make_safe_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose PATH has neither relative nor excluded folders."""
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    absolute = (folder for folder in folders if folder.startswith("/") and not is_excluded(folder))
    return {**environment, "PATH": os.pathsep.join(absolute)}
