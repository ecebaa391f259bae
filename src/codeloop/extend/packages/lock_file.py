"""Installed packages, each with a lock file: its version, and a hash of every file.

data/plugins/npm+NAME/           data/plugins/pypi+NAME/
data/plugins/npm+NAME.lock.json  {"name", "version", "registry", "entry", "files": {path: sha256}}
"""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import create_private_folder, write_atomically
from codeloop.schema.wire import DECODE_ERRORS

Registry = Literal["npm", "pypi"]
# Caches change while a package is used; its hashes must not.
_SKIPPED_FOLDERS = frozenset(("__pycache__", ".cache"))


class LockFile(Struct, frozen=True):
    """An installed package. `entry`: the loaded path below its folder.
    `looked`: a hash of its files' stats.

    `wanted`: the requested version, such as `^1` or `latest`.
    """

    name: str
    version: str
    registry: Registry
    entry: str
    files: dict[str, str]
    looked: str = ""
    wanted: str = ""


def get_lock_path(folder: Path) -> Path:
    """Return the lock file of a package's folder."""
    return folder.with_name(f"{folder.name}.lock.json")


def read_lock(folder: Path) -> LockFile | None:
    """Read the lock file of a package's folder; None: nothing was installed there."""
    try:
        return msgspec.json.decode(get_lock_path(folder).read_bytes(), type=LockFile)
    except (OSError, *DECODE_ERRORS):
        return None


def write_lock(folder: Path, lock: LockFile) -> None:
    """Write the lock file of a folder."""
    create_private_folder(folder.parent)
    write_atomically(
        get_lock_path(folder), msgspec.json.format(msgspec.json.encode(lock), indent=1)
    )


def find_changed_file(folder: Path, lock: LockFile) -> str | None:
    """Return a file that differs from the lock file, or None.

    Files with unchanged stats are not read again: if all were read and none differs,
    the lock file gets their stats.
    """
    stats_hash = hash_stats(folder)
    if stats_hash == lock.looked:
        return None
    current_files = hash_files(folder)
    for path in sorted(current_files.keys() | lock.files.keys()):
        if current_files.get(path) != lock.files.get(path):
            return path
    # The times have changed but no content, such as after a copy: with the new stats the files
    # need not be read next time.
    write_lock(folder, msgspec.structs.replace(lock, looked=stats_hash))
    return None


def hash_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its path below the folder;
    for a link, the hash of its target's path.
    """
    return {path.relative_to(folder).as_posix(): _hash_file(path) for path in _walk_files(folder)}


def hash_stats(folder: Path) -> str:
    """Return a hash of the sizes and times of all files, with the inode's change time,
    which no program can set.
    """
    digest = sha256()
    for path in _walk_files(folder):
        state = path.lstat()
        stats = (
            str(path.relative_to(folder)),
            state.st_size,
            state.st_mtime_ns,
            state.st_ctime_ns,
            state.st_ino,
        )
        digest.update(repr(stats).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def _hash_file(path: Path) -> str:
    # A link is hashed by its target's name: following it would hash files outside of the package.
    data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    return sha256(data).hexdigest()


def _walk_files(folder: Path) -> Iterator[Path]:
    for top, folders, names in os.walk(folder):
        # Links to folders count as files, and are not followed.
        linked = [name for name in folders if Path(top, name).is_symlink()]
        folders[:] = sorted(
            name for name in folders if name not in _SKIPPED_FOLDERS and name not in linked
        )
        yield from (
            Path(top, name) for name in sorted((*names, *linked)) if not name.endswith(".pyc")
        )
