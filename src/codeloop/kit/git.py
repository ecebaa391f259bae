"""How git is called (it runs nothing that a repository or a variable configures), and where a repository is kept."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from codeloop.kit.small_files import read_start

_POINTER_BYTES = 4096

# A repository's own configuration can name programs; none of them may run.
_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.sshCommand=false"),
    *("-c", "core.alternateRefsCommand=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "gc.auto=0"),
    "--no-pager",
    "--no-replace-objects",
    "--literal-pathspecs",
)
_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_CEILING_DIRECTORIES": "/",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",  # stands above what a repository allows; before 2.45 git fetches what is missing
    "LC_ALL": "C",
}
_NO_SETTINGS = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_GLOBAL": "/dev/null"}


class GitCall(Struct, frozen=True):
    """A command of git's, and the environment to run it in."""

    command: list[str]
    environment: dict[str, str]


def git_call(
    folder: Path, *arguments: str, environment: Mapping[str, str], own_settings: bool = False, program: str = "git"
) -> GitCall:
    """Return how git is called on a git directory: it seeks no other, and runs, fetches and writes nothing.

    No variable leads it elsewhere. `own_settings`: the person's own configuration is read as well.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    return GitCall(
        [program, *_OPTIONS, f"--git-dir={folder}", *arguments],
        {**kept, **_ENVIRONMENT, **({} if own_settings else _NO_SETTINGS)},
    )


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
