"""The work tree around a directory, and the permanent id of its project."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal
from zlib import crc32

import msgspec
from msgspec import Struct

from codeloop.config.files import reason, write_private
from codeloop.config.paths import Paths
from codeloop.kit.git import common_folder, find_blocking_file, git_call, git_folder
from codeloop.kit.processes import leave_out
from codeloop.kit.small_files import read_start
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import PROJECT_ID

GLOBAL = "global"
_ROOT = "worktree"
_POINTER_BYTES = 4096
_LONG_PATH = 120
"""Bytes of a path that a folder is named by; a name has at most 255, and three may stand for one."""


class ProjectRoot(Struct, frozen=True):
    """Where a run works. Both paths are absolute with every link followed; `directory` is `root` or below it.

    `root`: the work tree's top, or the directory itself outside a repository. `project_id`: the hash of the
    repository's root commit; "global" outside a repository and in one without commits.
    """

    root: Path
    directory: Path
    project_id: str
    vcs: Literal["git"] | None

    @property
    def path(self) -> str:
        """The directory relative to the work tree's top; empty for the top itself."""
        return "" if self.directory == self.root else str(self.directory.relative_to(self.root))

    def scratch(self, folder: Path) -> Path:
        """Return where whole outputs of tools go, in the project's folder: work trees of one project share none."""
        path = os.fsencode(self.root)
        name = str(self.root).replace("%", "%25").replace("/", "%2F")
        if len(path) > _LONG_PATH:
            name = f"{crc32(path):08x}{crc32(path[::-1]):08x}{os.fsdecode(os.fsencode(name)[-_LONG_PATH:])}"
        return folder / "tool-output" / name


class _Known(msgspec.Struct, frozen=True):
    """What is remembered of one repository; `mark` changes when it is created again at the same path."""

    repository: str
    mark: str
    project_id: str


def find_project_root(directory: Path, paths: Paths, environment: Mapping[str, str]) -> ProjectRoot:
    """Find the work tree around a directory. Asks git only the first time that a repository is seen.

    Raises CodeloopError when the directory is missing or can't be read.
    """
    here = _readable(directory)
    leave_out(here)
    for root in (here, *here.parents):
        repository = _repository(root)
        if repository is not None:
            leave_out(root)
            return ProjectRoot(root, here, _project_id(repository, paths, environment), "git")
    return ProjectRoot(here, here, GLOBAL, None)


def record_root(folder: Path, project_root: ProjectRoot) -> None:
    """Keep where a project was last opened in the project's folder, so that it is known before its first session."""
    if project_root.project_id != GLOBAL and read_root(folder) != str(project_root.root):
        with suppress(OSError, UnicodeEncodeError):
            write_private(folder / _ROOT, str(project_root.root))


def read_root(folder: Path) -> str | None:
    """Return the root that `record_root` stored; `/` for what is outside of repositories, None for no record."""
    if folder.name == GLOBAL:
        return "/"
    try:
        return read_start(folder / _ROOT, _POINTER_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return None


def _readable(directory: Path) -> Path:
    try:
        here = directory.resolve(strict=True)
        with os.scandir(here):
            pass
    except (OSError, RuntimeError) as error:
        why = reason(error) if isinstance(error, OSError) else "its links form a loop"
        raise CodeloopError(f"The directory {directory} can't be used: {why}. Choose another one.") from error
    if not os.access(here, os.X_OK):
        raise CodeloopError(f"The directory {directory} can't be entered: Permission denied. Choose another one.")
    return here


def _repository(root: Path) -> Path | None:
    """Return the folder that holds the objects of the repository whose work tree has its top here."""
    try:
        folder = git_folder(root)
        return common_folder(folder).resolve() if folder is not None else None
    except (OSError, RuntimeError, ValueError):
        return None


def _project_id(repository: Path, paths: Paths, environment: Mapping[str, str]) -> str:
    if _is_unborn(repository):
        return GLOBAL
    mark = _mark(repository)
    file = paths.cache / "repository" / f"{crc32(os.fsencode(repository)):08x}.json"
    remembered = _recall(file)
    if remembered is not None and remembered.repository == str(repository) and remembered.mark == mark:
        return remembered.project_id
    project_id, is_final = _root_commit(repository, environment)
    if is_final:
        with suppress(OSError, UnicodeEncodeError):
            remembered_now = _Known(repository=str(repository), mark=mark, project_id=project_id)
            write_private(file, msgspec.json.encode(remembered_now).decode())
    return project_id


def _is_unborn(repository: Path) -> bool:
    """Return whether nothing was ever committed, without a process: there is no reference of any kind."""
    try:
        if (repository / "packed-refs").exists() or (repository / "reftable").exists():
            return False
        if not read_start(repository / "HEAD", _POINTER_BYTES).startswith(b"ref:"):
            return False
        return not any(files for _, _, files in os.walk(repository / "refs"))
    except OSError:
        return False


def _mark(repository: Path) -> str:
    """Identify a repository by what `git init` writes once; the inode alone may be used again."""
    facts = [repository.stat().st_ino]
    for name in ("description", "info/exclude", "config"):
        with suppress(OSError):
            status = (repository / name).stat()
            return "-".join(map(str, [*facts, status.st_ino, status.st_mtime_ns]))
    return str(facts[0])


def _recall(file: Path) -> _Known | None:
    try:
        return msgspec.json.decode(read_start(file, 2 * _POINTER_BYTES), type=_Known)
    except (OSError, msgspec.DecodeError):
        return None


def _root_commit(repository: Path, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Ask git for the first root commit in sorted order; the second value says whether asking again is useless.

    Where git is missing, refuses or needs too long, the path names the project.
    """
    import subprocess
    from hashlib import sha1

    by_path = sha1(os.fsencode(repository), usedforsecurity=False).hexdigest()
    if find_blocking_file(repository) is not None:
        return by_path, False
    call = git_call(repository, "rev-list", "--max-parents=0", "HEAD", environment=environment)
    try:
        completed = subprocess.run(
            call.command,
            env=call.environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PROJECT_ID.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return by_path, True
    except OSError:
        return by_path, False
    commits = sorted(completed.stdout.decode("ascii", "replace").split())
    if completed.returncode == 0 and commits:
        return commits[0], True
    return by_path, False
