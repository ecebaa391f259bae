"""Stores blobs and trees of snapshots in a git directory of codeloop's own, in git's format but without running git.

It also finds the objects of the user's repositories, which are not stored again.
"""

import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

import msgspec

from codeloop.kit.git import find_blocking_file, make_git_call
from codeloop.kit.small_files import write_atomically
from codeloop.schema.limits import SNAPSHOT_GIT

# The id of a tree without entries.
EMPTY_TREE = sha1(b"tree 0\0", usedforsecurity=False).hexdigest()
FOLDER_MODE = 0o40000
# Trees that are kept in memory; all are dropped when there are more.
_MAX_CACHED_TREES = 4096
# The fastest level: a tool call waits for the snapshot before it.
_COMPRESSION_LEVEL = 1
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"


class TreeEntry(msgspec.Struct, frozen=True, order=True):
    """The entry of a tree for one path: its mode as of `to_git_mode`, and the 40 hex digits of its blob.

    In a stored tree, a folder's entry has FOLDER_MODE and the digits of its tree.
    """

    mode: int
    blob: str


class MissingObject(Exception):
    """An object does not exist, or no longer does; the message is its id."""


class StoredObject(NamedTuple):
    """An object in the store. `size`: of its file in bytes; `used_at`: when it was stored last, s since the epoch."""

    object_id: str
    size: int
    used_at: float


class ObjectStore:
    """One shadow git directory. Raises OSError when it can't be written, MissingObject for an object not in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects = folder / "objects"
        self._shared: tuple[Path, ...] | None = None
        # Ids of objects that this process has stored.
        self._written_ids: set[str] = set()
        self._trees: dict[str, tuple[tuple[str, TreeEntry], ...]] = {}
        self._made_folders: set[str] = set()

    def create_if_missing(self) -> None:
        """Create the directory if it does not exist yet."""
        if self._shared is None:
            self.share_objects(())

    def share_objects(self, others: Iterable[Path]) -> None:
        """Use the objects in these directories too, without copying them. Creates the store's folder if needed."""
        # git's file of such directories has one a line.
        paths = tuple(dict.fromkeys(path for path in others if "\n" not in str(path)))
        if paths == self._shared:
            return
        for name in ("objects/info", "objects/pack", "refs/heads"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", _CONFIG)):
            if not (self.folder / name).exists():
                write_atomically(self.folder / name, text.encode())
        # git would wait for ever for a named pipe in one of them.
        readable = [path for path in paths if find_blocking_file(path.parent) is None]
        rows = b"".join(os.fsencode(path) + b"\n" for path in readable)
        write_atomically(self._objects / "info" / "alternates", rows)
        self._shared = paths

    def put_blob(self, data: bytes) -> str:
        """Store the content of a file; return its id, 40 hex digits."""
        return self._put(b"blob", data)

    def put_tree(self, entries: Mapping[str, TreeEntry]) -> str:
        """Store a folder: its names (no slashes) with their blobs, and trees with FOLDER_MODE; return its id."""
        # git sorts a folder as if its name ended with a slash.
        rows = sorted(
            (os.fsencode(name) + (b"/" if entry.mode == FOLDER_MODE else b""), entry) for name, entry in entries.items()
        )
        data = b"".join(
            b"%o %s\0%s" % (entry.mode, name.removesuffix(b"/"), bytes.fromhex(entry.blob)) for name, entry in rows
        )
        return self._put(b"tree", data)

    def read_tree(self, object_id: str) -> tuple[tuple[str, TreeEntry], ...]:
        """Return the names and entries of a tree, in git's order."""
        if object_id == EMPTY_TREE:
            return ()
        entries = self._trees.get(object_id)
        if entries is None:
            if len(self._trees) > _MAX_CACHED_TREES:
                self._trees.clear()
            entries = self._trees[object_id] = tuple(_parse_tree(self._read_own(object_id, b"tree")))
        return entries

    def read_blob(self, object_id: str) -> bytes:
        """Return the bytes of a blob in this store. Raises MissingObject for shared ones: `copy_shared` them first."""
        return self._read_own(object_id, b"blob")

    def has(self, object_id: str) -> bool:
        """Return whether an object is in this store (not only among the shared ones)."""
        return object_id in self._written_ids or self._path(object_id).exists()

    def copy_shared(
        self, object_ids: Collection[str], environment: Mapping[str, str], find_size: Callable[[str], int | None]
    ) -> None:
        """Copy shared blobs to this store, so that they stay when their repository drops them; skip missing ones.

        `find_size`: returns the size that a blob's file had on the disk, None if it is unknown. A blob of another size
        was converted by git, so it is not the file's content, and is skipped too.
        """
        missing = [object_id for object_id in dict.fromkeys(object_ids) if not self.has(object_id)]
        if not missing:
            return
        for object_id, data in _read_with_git(self.folder, missing, environment):
            if find_size(object_id) in {None, len(data)}:
                self.put_blob(data)

    def _put(self, kind: bytes, data: bytes) -> str:
        stored_data = b"%s %d\0%s" % (kind, len(data), data)
        object_id = sha1(stored_data, usedforsecurity=False).hexdigest()
        if object_id in self._written_ids:
            return object_id
        path = self._path(object_id)
        try:
            # It is used again, so its age restarts: `prune` removes the oldest.
            os.utime(path)
        except FileNotFoundError:
            if object_id[:2] not in self._made_folders:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._made_folders.add(object_id[:2])
            write_atomically(path, zlib.compress(stored_data, _COMPRESSION_LEVEL))
        self._written_ids.add(object_id)
        return object_id

    def _read_own(self, object_id: str, kind: bytes) -> bytes:
        try:
            stored_data = zlib.decompress(self._path(object_id).read_bytes())
        except (OSError, zlib.error) as error:
            raise MissingObject(object_id) from error
        head, _, data = stored_data.partition(b"\0")
        # Objects are not synced to the disk, so a crash of the machine may leave a damaged one.
        if not head.startswith(kind + b" ") or sha1(stored_data, usedforsecurity=False).hexdigest() != object_id:
            raise MissingObject(object_id)
        return data

    def _path(self, object_id: str) -> Path:
        return self._objects / object_id[:2] / object_id[2:]

    def list_objects(self) -> Iterator[StoredObject]:
        """Yield every object in this store."""
        with suppress(FileNotFoundError), os.scandir(self._objects) as folders:
            for folder in folders:
                # The others are `info` and `pack`.
                if len(folder.name) != 2:
                    continue
                with os.scandir(folder.path) as files:
                    for file in files:
                        with suppress(FileNotFoundError):
                            info = file.stat()
                            yield StoredObject(folder.name + file.name, info.st_size, info.st_mtime)

    def prune(self, keep: Collection[str], unused_since: float, max_bytes: int) -> int:
        """Remove objects not in `keep`, the oldest first; return their number.

        All those not used since `unused_since` (s since the epoch) are removed, others until at most `max_bytes` are
        left.
        """
        objects = sorted(self.list_objects(), key=lambda each: each.used_at)
        total = sum(each.size for each in objects)
        removed = 0
        for each in objects:
            if each.used_at >= unused_since and total <= max_bytes:
                break
            if each.object_id in keep:
                continue
            with suppress(FileNotFoundError):
                self._path(each.object_id).unlink()
            total -= each.size
            removed += 1
        self._written_ids.clear()
        self._trees.clear()
        return removed


def _parse_tree(data: bytes) -> Iterator[tuple[str, TreeEntry]]:
    # Each entry: mode, blank, name, NUL, 20 bytes of the id.
    position = 0
    while position < len(data):
        space = data.index(b" ", position)
        end = data.index(0, space)
        name = os.fsdecode(data[space + 1 : end])
        yield name, TreeEntry(int(data[position:space], 8), data[end + 1 : end + 21].hex())
        position = end + 21


def _read_with_git(folder: Path, object_ids: list[str], environment: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield shared blobs, which may be packed, by running git. It reads no configuration but ours, and runs nothing."""
    import subprocess

    call = make_git_call(folder, "cat-file", "--batch", environment=environment)
    try:
        process = subprocess.run(
            call.command,
            input="".join(f"{object_id}\n" for object_id in object_ids).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=call.environment,
            cwd=folder,
            timeout=SNAPSHOT_GIT.seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    # For each object: a line with id, kind and size, then the content and a line end. A missing one has the line alone,
    # with the word "missing".
    output, position = process.stdout, 0
    while position < len(output):
        end = output.index(b"\n", position)
        object_id, *fields = output[position:end].decode().split()
        position = end + 1
        if len(fields) == 2:
            kind, size = fields[0], int(fields[1])
            if kind == "blob":
                yield object_id, output[position : position + size]
            position += size + 1
