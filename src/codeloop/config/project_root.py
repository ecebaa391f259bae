"""Finds the work tree around a directory, and the id of its project,
which stays the same wherever it is cloned.

Also notes in the folder of a project where its work tree is (`record_root`, `read_root`).
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal
from zlib import crc32

import msgspec
from msgspec import Struct

from codeloop.config.files import describe_os_error, write_private
from codeloop.config.paths import Paths
from codeloop.kit.git import (
    explain_refused_folder,
    find_blocking_file,
    find_common_folder,
    find_git_folder,
    make_git_call,
)
from codeloop.kit.programs import exclude_folder, make_child_environment
from codeloop.kit.small_files import read_start
from codeloop.kit.text.undecodable import escape_undecodable
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import PROJECT_ID_TIME
from codeloop.schema.wire import DECODE_ERRORS

GLOBAL_PROJECT_ID = "global"
# The file in a project's folder that holds the path of its work tree.
_ROOT_RECORD_NAME = "worktree"
# Of a file that holds a path or a reference.
_MAX_POINTER_BYTES = 4096
# Bytes of a path that become part of a folder's name: names have at most 255 bytes,
# and quoting may triple some.
_MAX_PATH_IN_NAME = 120


class ProjectRoot(Struct, frozen=True):
    """The directory that a run works in, and its project.
    The paths are absolute, with all links resolved.

    `root`: the top of the work tree around `directory`, or `directory` itself outside repositories.
    `project_id`: the hash of the repository's root commit, or of its path where git can't say;
    "global" outside repositories and in one without commits. `warning`: why the repository of a
    folder around the directory is not used; "": there is none.
    """

    root: Path
    directory: Path
    project_id: str
    vcs: Literal["git"] | None
    warning: str = ""

    @property
    def directory_name(self) -> str:
        """The directory as sessions store it and clients name it: bytes that are
        not UTF-8 are written out.
        """
        return escape_undecodable(str(self.directory))

    @property
    def root_name(self) -> str:
        """The top of the work tree, named as `directory_name`."""
        return escape_undecodable(str(self.root))

    @property
    def relative_path(self) -> str:
        """The directory, relative to the top of the work tree, as sessions store it;
        empty for the top itself.
        """
        return (
            ""
            if self.directory == self.root
            else escape_undecodable(str(self.directory.relative_to(self.root)))
        )

    @property
    def directory_filter(self) -> str | None:
        """The directory that selects the project's sessions in its database;
        None: all of them are the project's.

        Directories outside of git repositories share one database.
        """
        return self.directory_name if self.project_id == GLOBAL_PROJECT_ID else None

    @property
    def folders(self) -> list[Path]:
        """The folders from the top of the work tree down to the directory, both included."""
        return list_folders_down(self.root, self.directory)

    def get_scratch_folder(self, folder: Path) -> Path:
        """Return the folder for full outputs of tools, below the project's folder;
        each work tree has its own.
        """
        path = os.fsencode(self.root)
        name = str(self.root).replace("%", "%25").replace("/", "%2F")
        if len(path) > _MAX_PATH_IN_NAME:
            # Two checksums, so that long paths with the same end hardly get the same name.
            name = f"{crc32(path):08x}{crc32(path[::-1]):08x}{os.fsdecode(os.fsencode(name)[-_MAX_PATH_IN_NAME:])}"
        return folder / "tool-output" / name


def list_folders_down(top: Path, directory: Path) -> list[Path]:
    """Return the folders from `top` down to a directory in it, both included."""
    folders = [top]
    for name in directory.relative_to(top).parts:
        folders.append(folders[-1] / name)
    return folders


class _CachedId(msgspec.Struct, frozen=True):
    """The cached project id of a repository. `mark` shows if another repository was
    created at the same path since.
    """

    repository: str
    mark: str
    project_id: str


def find_project_root(directory: Path, paths: Paths, environment: Mapping[str, str]) -> ProjectRoot:
    """Find the work tree around a directory. Git is only started the first time
    that a repository is seen.

    From now on `find_program` finds no program below it in this process: the agent can write there,
    and a `git` of the project must not be started as codeloop's own. A repository that leads
    elsewhere, or is another user's, is none.

    Raises CodeloopError when the directory is missing or can't be read.
    """
    here = _resolve_readable(directory)
    exclude_folder(here)
    warning = ""
    for root in (here, *here.parents):
        if not os.path.lexists(root / ".git"):
            continue
        repository = _find_repository(root)
        if repository is not None:
            exclude_folder(root)
            return ProjectRoot(
                root, here, _find_project_id(repository, paths, environment), "git", warning
            )
        warning = warning or explain_refused_folder(root)
    return ProjectRoot(here, here, GLOBAL_PROJECT_ID, None, warning)


def record_root(folder: Path, project_root: ProjectRoot) -> None:
    """Store the root in a project's folder when it is opened,
    so that it is known before the first session.
    """
    if project_root.project_id != GLOBAL_PROJECT_ID and read_root(folder) != str(project_root.root):
        with suppress(OSError, UnicodeEncodeError):
            write_private(folder / _ROOT_RECORD_NAME, str(project_root.root))


def read_root(folder: Path) -> str | None:
    """Return the root that `record_root` stored; `/` for the project outside repositories;
    None: no record.
    """
    if folder.name == GLOBAL_PROJECT_ID:
        return "/"
    try:
        return read_start(folder / _ROOT_RECORD_NAME, _MAX_POINTER_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return None


def _resolve_readable(directory: Path) -> Path:
    try:
        here = directory.resolve(strict=True)
        with os.scandir(here):
            pass
    except (OSError, RuntimeError) as error:
        why = describe_os_error(error) if isinstance(error, OSError) else "its links form a loop"
        raise CodeloopError(
            f"The directory {directory} can't be used: {why}. Choose another one."
        ) from error
    if not os.access(here, os.X_OK):
        raise CodeloopError(
            f"The directory {directory} can't be entered: Permission denied. Choose another one."
        )
    return here


def _find_repository(root: Path) -> Path | None:
    """Return the folder with the objects of the repository whose work tree has its top at `root`,
    or None.
    """
    try:
        folder = find_git_folder(root)
        return find_common_folder(folder).resolve() if folder is not None else None
    except (OSError, RuntimeError, ValueError):
        return None


def _find_project_id(repository: Path, paths: Paths, environment: Mapping[str, str]) -> str:
    if _is_unborn(repository):
        return GLOBAL_PROJECT_ID
    mark = _make_repository_mark(repository)
    file = paths.cache / "repository" / f"{crc32(os.fsencode(repository)):08x}.json"
    cached = _read_cache(file)
    if cached is not None and cached.repository == str(repository) and cached.mark == mark:
        return cached.project_id
    project_id, may_cache = _find_root_commit(repository, environment)
    if may_cache:
        with suppress(OSError, UnicodeEncodeError):
            cached_id = _CachedId(repository=str(repository), mark=mark, project_id=project_id)
            write_private(file, msgspec.json.encode(cached_id).decode())
    return project_id


def _is_unborn(repository: Path) -> bool:
    """Return whether a repository has no commits, found out from its references,
    without starting git.
    """
    try:
        # References may be in these files instead of the folder `refs`.
        if (repository / "packed-refs").exists() or (repository / "reftable").exists():
            return False
        if not read_start(repository / "HEAD", _MAX_POINTER_BYTES).startswith(b"ref:"):
            return False
        return not any(files for _, _, files in os.walk(repository / "refs"))
    except OSError:
        return False


def _make_repository_mark(repository: Path) -> str:
    """Return a text that differs for another repository at the same path."""
    inode = repository.stat().st_ino
    # Inodes are reused, so the mark also has the time of a file that only `git init`
    # writes: the first that exists.
    for name in ("description", "info/exclude", "config"):
        with suppress(OSError):
            status = (repository / name).stat()
            return f"{inode}-{status.st_ino}-{status.st_mtime_ns}"
    return str(inode)


def _read_cache(file: Path) -> _CachedId | None:
    try:
        return msgspec.json.decode(read_start(file, 2 * _MAX_POINTER_BYTES), type=_CachedId)
    except (OSError, *DECODE_ERRORS):
        return None


def _find_root_commit(repository: Path, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Return a repository's first root commit in sorted order,
    and whether the answer may be cached.

    If git is missing, may not be run there, fails or takes too long, the id is a hash of the path.
    """
    import subprocess
    from hashlib import sha1

    from codeloop.kit.git.own_folder import UnusableRepository, open_own_folder, read_real_folder

    by_path = sha1(os.fsencode(repository), usedforsecurity=False).hexdigest()
    if find_blocking_file(repository) is not None:
        return by_path, False
    try:
        with open_own_folder(read_real_folder(repository, environment), environment) as folder:
            call = make_git_call(
                folder, "rev-list", "--max-parents=0", "HEAD", environment=environment
            )
            result = subprocess.run(
                call.command,
                env=make_child_environment(call.environment, "/"),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=PROJECT_ID_TIME.seconds,
                check=False,
            )
    # Cached, since each start would wait as long again.
    except subprocess.TimeoutExpired:
        return by_path, True
    except (OSError, UnusableRepository):
        return by_path, False
    commits = sorted(result.stdout.decode("ascii", "replace").split())
    if result.returncode == 0 and commits:
        return commits[0], True
    return by_path, False
