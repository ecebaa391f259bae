"""The shadow git directory: blobs and trees in git's own format, written without git, sharing the user's objects."""

import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha1
from pathlib import Path

import msgspec

from codeloop.kit.git import find_blocking_file, make_git_call
from codeloop.kit.small_files import write_atomically
from codeloop.schema.limits import SNAPSHOT_GIT

EMPTY_TREE = sha1(b"tree 0\0", usedforsecurity=False).hexdigest()
FOLDER = 0o40000
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"


class TreeEntry(msgspec.Struct, frozen=True, order=True):
    """The entry of a tree for one path: git's mode (0o100644, 0o100755, 0o120000) and the blob's 40 hex digits."""

    mode: int
    blob: str


class MissingObject(Exception):
    """An object does not exist, or no longer does."""


class ObjectStore:
    """One shadow git directory. Raises OSError when it can't be written, MissingObject when something is not in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects = folder / "objects"
        self._shared: tuple[Path, ...] | None = None
        self._written_names: set[str] = set()
        self._trees: dict[str, tuple[tuple[str, TreeEntry], ...]] = {}
        self._made_folders: set[str] = set()

    def ensure(self) -> None:
        """Make the directory if it is not there yet."""
        if self._shared is None:
            self.share(())

    def share(self, others: Iterable[Path]) -> None:
        """Also look up objects in these directories. Creates the store's folder if needed."""
        paths = tuple(dict.fromkeys(path for path in others if "\n" not in str(path)))
        if paths == self._shared:
            return
        for name in ("objects/info", "objects/pack", "refs/heads"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", _CONFIG)):
            if not (self.folder / name).exists():
                write_atomically(self.folder / name, text.encode())
        readable = [path for path in paths if find_blocking_file(path.parent) is None]
        rows = b"".join(os.fsencode(path) + b"\n" for path in readable)
        write_atomically(self._objects / "info" / "alternates", rows)
        self._shared = paths

    def put_blob(self, data: bytes) -> str:
        """Store bytes; returns their name, 40 hex digits."""
        return self._put(b"blob", data)

    def put_tree(self, entries: Mapping[str, TreeEntry]) -> str:
        """Store a folder: its names (no slashes) with their blobs, and trees with mode FOLDER."""
        rows = sorted(
            (os.fsencode(name) + (b"/" if item.mode == FOLDER else b""), item) for name, item in entries.items()
        )
        data = b"".join(
            b"%o %s\0%s" % (item.mode, name.removesuffix(b"/"), bytes.fromhex(item.blob)) for name, item in rows
        )
        return self._put(b"tree", data)

    def tree(self, name: str) -> tuple[tuple[str, TreeEntry], ...]:
        """Return the entries of a tree, in git's order."""
        if name == EMPTY_TREE:
            return ()
        entries = self._trees.get(name)
        if entries is None:
            if len(self._trees) > 4096:
                self._trees.clear()
            entries = self._trees[name] = tuple(_parse_rows(self._own(name, b"tree")))
        return entries

    def blob(self, name: str) -> bytes:
        """Return the bytes of a blob in this store. Raises MissingObject for shared ones: `fetch` them first."""
        return self._own(name, b"blob")

    def has(self, name: str) -> bool:
        """Return whether an object is here (not only among the shared ones)."""
        return name in self._written_names or self._path(name).exists()

    def fetch(self, names: Collection[str], environment: Mapping[str, str], size: Callable[[str], int | None]) -> None:
        """Copy shared blobs here, so that they stay when their repository drops them. Missing ones are skipped.

        `size`: how many bytes the file had on the disk; a blob of another length was converted, and is not taken.
        """
        missing = [name for name in dict.fromkeys(names) if not self.has(name)]
        if not missing:
            return
        for name, data in _ask_git(self.folder, missing, environment):
            if size(name) in {None, len(data)}:
                self.put_blob(data)

    def _put(self, kind: bytes, data: bytes) -> str:
        data_stored = b"%s %d\0%s" % (kind, len(data), data)
        name = sha1(data_stored, usedforsecurity=False).hexdigest()
        if name in self._written_names:
            return name
        path = self._path(name)
        try:
            os.utime(path)  # it is used again: its age restarts
        except FileNotFoundError:
            if name[:2] not in self._made_folders:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._made_folders.add(name[:2])
            write_atomically(path, zlib.compress(data_stored, 1))
        self._written_names.add(name)
        return name

    def _own(self, name: str, kind: bytes) -> bytes:
        try:
            data_stored = zlib.decompress(self._path(name).read_bytes())
        except (OSError, zlib.error) as error:
            raise MissingObject(name) from error
        head, _, data = data_stored.partition(b"\0")
        if not head.startswith(kind + b" ") or sha1(data_stored, usedforsecurity=False).hexdigest() != name:
            raise MissingObject(name)
        return data

    def _path(self, name: str) -> Path:
        return self._objects / name[:2] / name[2:]

    def iterate_objects(self) -> Iterator[tuple[str, int, float]]:
        """Return the name, size in bytes and age (time in s since the epoch) of every object that is here."""
        with suppress(FileNotFoundError), os.scandir(self._objects) as folders:
            for folder in folders:
                if len(folder.name) != 2:
                    continue
                with os.scandir(folder.path) as files:
                    for file in files:
                        with suppress(FileNotFoundError):
                            info = file.stat()
                            yield folder.name + file.name, info.st_size, info.st_mtime

    def prune(self, keep: Collection[str], older: float, size: int) -> int:
        """Remove objects not in `keep`, the oldest first; returns how many.

        Those last wanted before `older` (s since the epoch) all go, others until at most `size` bytes are left.
        """
        rows = sorted(self.iterate_objects(), key=lambda row: row[2])
        total = sum(row[1] for row in rows)
        removed = 0
        for name, length, used_at in rows:
            if used_at >= older and total <= size:
                break
            if name in keep:
                continue
            with suppress(FileNotFoundError):
                self._path(name).unlink()
            total -= length
            removed += 1
        self._written_names.clear()
        self._trees.clear()
        return removed


def _parse_rows(data: bytes) -> Iterator[tuple[str, TreeEntry]]:
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(0, space)
        name = os.fsdecode(data[space + 1 : end])
        yield name, TreeEntry(int(data[at:space], 8), data[end + 1 : end + 21].hex())
        at = end + 21


def _ask_git(folder: Path, names: list[str], environment: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Read objects out of the shared directories' packs. No configuration but our own is read, and nothing runs."""
    import subprocess

    call = make_git_call(folder, "cat-file", "--batch", environment=environment)
    try:
        process = subprocess.run(
            call.command,
            input="".join(f"{name}\n" for name in names).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=call.environment,
            cwd=folder,
            timeout=SNAPSHOT_GIT.seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    out, at = process.stdout, 0
    while at < len(out):
        end = out.index(b"\n", at)
        name, *rest = out[at:end].decode().split()
        at = end + 1
        if len(rest) == 2 and rest[0] == "blob":
            size = int(rest[1])
            yield name, out[at : at + size]
            at += size + 1
        elif len(rest) == 2:
            at += int(rest[1]) + 1
