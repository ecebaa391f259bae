"""Carries new objects from a private git folder to the real one: each is read,
checked against its name, and copied.
"""

import errno
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from codeloop.kit.small_files import write_all
from codeloop.workspace.git.private.open_folder import OpenFolder
from codeloop.workspace.git.private.own_git import OwnGit

_FAN_OUT = r"[0-9a-f]{2}"
_REST = r"[0-9a-f]{38}|[0-9a-f]{62}"
_PACK = r"(pack-[0-9a-f]{40}|pack-[0-9a-f]{64})\.pack"
_PACK_SUFFIXES = (".pack", ".idx", ".rev", ".mtimes", ".bitmap", ".keep", ".promisor")
_HEADER = rb"(?:blob|tree|commit|tag) (\d{1,12})\0"
_MAX_HEADER = 32
_PARENT = rb"(?m)^parent ([0-9a-f]+)$"
_CHUNK_BYTES = 256 * 1024
# A larger object does not fit into the memory of most machines, where git itself would need it.
_MAX_OBJECT_BYTES = 4 * 1024**3
# Of larger commits no parents are read.
_MAX_COMMIT_BYTES = 64 * 1024
_LARGE_FILE = r"[0-9a-f]{64}"
_MAX_LARGE_FILES = 100_000
FULL_ERRORS = frozenset((errno.ENOSPC, errno.EDQUOT))
_DRAFT_PREFIX = "tmp_obj_codeloop"


@contextmanager
def keep_when_full() -> Generator[None]:
    """Suppress OSError, but for a full disk: then nothing of the command may be dropped."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_ERRORS:
            raise


class BadObject(ValueError):
    """An object is not what its name says."""


def carry_objects(
    real: OpenFolder, private: OpenFolder, unit: str, git: OwnGit, *, is_idle: bool
) -> dict[bytes, tuple[bytes, ...]]:
    """Carry the new objects of a git folder below two tops.
    Returns the parents of each new commit, by its hash.

    `unit`: the git folder's path below both, with a slash at its end; "" for the tops themselves;
    `is_idle`: no command that sees the private folder runs. What is not what its name says is
    dropped: no reference that needs it is carried then.
    """
    folder = f"{unit}objects"
    parents: dict[bytes, tuple[bytes, ...]] = {}
    for name, is_folder in private.list_entries(folder):
        if is_folder and re.fullmatch(_FAN_OUT, name):
            for rest, _ in private.list_entries(f"{folder}/{name}"):
                path = f"{folder}/{name}/{rest}"
                if re.fullmatch(_REST, rest):
                    with keep_when_full(), suppress(BadObject, zlib.error):
                        parents |= _carry_loose(real, private, path, name + rest)
                    with suppress(OSError):
                        private.remove(path)
            if is_idle:
                # A git that runs has made it a moment ago, say, and now writes an object there.
                private.remove_folder(f"{folder}/{name}")
    names = {name for name, _ in private.list_entries(f"{folder}/pack")}
    for name in sorted(names):
        pack = re.fullmatch(_PACK, name)
        # Git writes the list of a pack last, so a pack without one is not complete.
        if pack is None or f"{pack[1]}.idx" not in names:
            continue
        options = ["--promisor=codeloop"] if f"{pack[1]}.promisor" in names else []
        with keep_when_full(), private.open_file(f"{folder}/pack/{name}") as fd:
            if not git.store_pack(fd, options):
                room = os.fstatvfs(real.fd)
                if os.fstat(fd).st_size > room.f_bavail * room.f_frsize:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        for suffix in _PACK_SUFFIXES:
            with suppress(OSError):
                private.remove(f"{folder}/pack/{pack[1]}{suffix}")
    return parents


def _carry_loose(
    real: OpenFolder, private: OpenFolder, path: str, name: str
) -> dict[bytes, tuple[bytes, ...]]:
    """Copy a loose object. Returns its parents if it is a commit.
    Raises OSError, BadObject and zlib.error.
    """
    if real.read_stamp(path) is not None:
        return {}
    folder = path.rpartition("/")[0]
    with suppress(FileExistsError), real.open_parent(folder) as (objects, fan_out):
        # As the folders that are there: with the rights of a group that shares the repository.
        mode = stat.S_IMODE(os.fstat(objects).st_mode)
        os.mkdir(fan_out, dir_fd=objects)
        os.chmod(fan_out, mode, dir_fd=objects)
    start = _copy_file(real, private, path, partial(_copy_checked, name))
    if not start.startswith(b"commit "):
        return {}
    return {
        name.encode(): tuple(re.findall(_PARENT, start.partition(b"\0")[2].partition(b"\n\n")[0]))
    }


def carry_large_files(real: OpenFolder, private: OpenFolder, unit: str) -> None:
    """Carry the new files that Git LFS keeps in a git folder by the hash of their content.
    Else as `carry_objects`.
    """
    folder = f"{unit}lfs/objects"
    for path in [*private.walk(folder, _MAX_LARGE_FILES)]:
        name = path.rpartition("/")[2]
        is_named = (
            re.fullmatch(_LARGE_FILE, name) and path == f"{folder}/{name[:2]}/{name[2:4]}/{name}"
        )
        with keep_when_full(), suppress(BadObject):
            if is_named and real.read_stamp(path) is None:
                real.make_folder(path.rpartition("/")[0])
                _copy_file(real, private, path, partial(_copy_large, name))
            private.remove(path)


def _copy_file(
    real: OpenFolder, private: OpenFolder, path: str, copy: Callable[[int, int], bytes]
) -> bytes:
    """Make a file of a private folder in the real one,
    if `copy` from one descriptor to another succeeds.
    """
    with real.open_parent(path) as (parent, name), private.open_file(path) as source:
        draft = f"{_DRAFT_PREFIX}_{os.urandom(6).hex()}"
        target = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444, dir_fd=parent
        )
        with ExitStack() as on_failure:
            on_failure.callback(os.unlink, draft, dir_fd=parent)
            try:
                result = copy(source, target)
            finally:
                os.close(target)
            os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
            on_failure.pop_all()
    return result


def _copy_large(name: str, source: int, target: int) -> bytes:
    """Copy a file whose name is its hash. Raises BadObject."""
    digest = hashlib.sha256()
    while chunk := os.read(source, _CHUNK_BYTES):
        digest.update(chunk)
        write_all(target, chunk)
    if digest.hexdigest() != name:
        raise BadObject(name)
    return b""


def _copy_checked(name: str, source: int, target: int) -> bytes:
    """Copy a compressed object while its hash is computed. Returns its start.
    Raises as `_carry_loose`.

    The bytes that are checked are those that are written: a command may change its
    own file at the same time.
    """
    digest = hashlib.new("sha1" if len(name) == 40 else "sha256", usedforsecurity=False)
    inflate = zlib.decompressobj()
    start, total, bound = b"", 0, _MAX_HEADER
    while chunk := os.read(source, _CHUNK_BYTES):
        write_all(target, chunk)
        while chunk and not inflate.eof:
            piece = inflate.decompress(chunk, _CHUNK_BYTES)
            chunk = inflate.unconsumed_tail
            digest.update(piece)
            total += len(piece)
            if len(start) < _MAX_COMMIT_BYTES:
                start += piece
                header = re.match(_HEADER, start)
                bound = header.end() + int(header[1]) if header is not None else _MAX_HEADER
            if total > min(bound, _MAX_OBJECT_BYTES):
                raise BadObject(name)
        if inflate.eof and (chunk or inflate.unused_data):
            raise BadObject(name)
    piece = inflate.flush()
    digest.update(piece)
    if not inflate.eof or total + len(piece) != bound or digest.hexdigest() != name:
        raise BadObject(name)
    return start + piece
