"""How git is called (it runs nothing that a repository or a variable configures), and where a repository is kept."""

import os
from collections.abc import Mapping
from pathlib import Path

from codeloop.kit.small_files import read_start

_POINTER_BYTES = 4096

# A repository's own configuration can name programs; none of them may run.
GIT_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.sshCommand=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "gc.auto=0"),
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
)
"""What stands between `git` and its command."""


def git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which no variable leads git elsewhere; the user's own configuration is read."""
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


def bare_git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git reads no configuration but its command line."""
    return {
        **git_environment(environment),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }


def git_folder(top: Path) -> Path | None:
    """Return the git directory of the work tree with its top here; None when there is none."""
    entry = top / ".git"
    try:
        folder = entry if entry.is_dir() else _pointed(entry, b"gitdir:", top)
        return folder if folder is not None and (folder / "HEAD").is_file() else None
    except (OSError, ValueError):  # ValueError: the file names no path
        return None


def common_folder(folder: Path) -> Path:
    """Return the git directory that holds the objects: that of the main work tree, for another one's."""
    return _pointed(folder / "commondir", b"", folder) or folder


def _pointed(file: Path, start: bytes, base: Path) -> Path | None:
    """Follow a file of git's that holds a path, relative to `base`; None when it is not one."""
    try:
        content = read_start(file, _POINTER_BYTES)
    except OSError:
        return None
    return base / os.fsdecode(content.removeprefix(start).strip()) if content.startswith(start) and content else None
