"""Stores blobs and trees of snapshots in a git directory of codeloop's own,
in git's format but without running git.

It also finds the objects of the user's repositories, which are not stored again.
"""

import os
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from codeloop.kit.small_files import write_atomically

if TYPE_CHECKING:
    from codeloop.workspace.snapshot.pack import Pack, PackedObject, StoredPack

# The id of a tree without entries.
EMPTY_TREE = sha1(b"tree 0\0", usedforsecurity=False).hexdigest()
FOLDER_MODE = 0o40000
# Trees that are kept in memory; all are dropped when there are more.
_MAX_CACHED_TREES = 4096
# The fastest level: a tool call waits for the snapshot before it.
_COMPRESSION_LEVEL = 1
# Fewer objects get a file each.
_MIN_PACKED_OBJECTS = 64
MAX_PACK_BYTES = 16 * 1024 * 1024
MAX_PACK_OBJECTS = 16_384
"""What is collected for one pack, at most."""
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"


class TreeEntry(msgspec.Struct, frozen=True, order=True):
    """The entry of a tree for one path: its mode as of `to_git_mode`,
    and the 40 hex digits of its blob.

    In a stored tree, a folder's entry has FOLDER_MODE and the digits of its tree.
    """

    mode: int
    blob: str


class MissingObject(Exception):
    """An object does not exist, or no longer does; the message is its id."""


class StoredObject(NamedTuple):
    """An object in the store. `size`: of its file in bytes;
    `used_at`: when it was stored last, s since the epoch.
    """

    object_id: str
    size: int
    used_at: float


class ObjectStore:
    """One shadow git directory. Raises OSError when it can't be written,
    MissingObject for an object not in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects = folder / "objects"
        # As text: paths as objects cost more than what is done with them for each of many files.
        self._objects_name = str(self._objects)
        self._is_created = False
        # Object directories of the user's repositories, in the order in which they were found.
        self._shared: dict[Path, None] = {}
        # Ids of objects that this process has stored.
        self._written_ids: set[str] = set()
        self._trees: dict[str, tuple[tuple[str, TreeEntry], ...]] = {}
        self._made_folders: set[str] = set()
        # Scans and jobs on single files run on threads of their own.
        self._packs_lock = threading.Lock()
        self._packs: list[Pack] = []
        # The time of the last change of their folder that the list knows of, in ns.
        self._packs_read_at = -1

    def create_if_missing(self) -> None:
        """Create the directory if it does not exist yet."""
        if self._is_created:
            return
        for name in ("objects/info", "objects/pack", "refs/heads"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        # Earlier versions had one. What it names may have become a pipe since, on which git waits.
        (self._objects / "info" / "alternates").unlink(missing_ok=True)
        for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", _CONFIG)):
            if not (self.folder / name).exists():
                write_atomically(self.folder / name, text.encode())
        self._is_created = True

    def share_objects(self, others: Iterable[Path]) -> None:
        """Use the objects in these directories too, without copying them."""
        # Only this process knows them: in git's file of such directories, one that has seen
        # no repository yet, or another thread, would take those of the others away.
        self._shared = dict.fromkeys([*self._shared, *others])

    def put_blob(self, data: bytes) -> str:
        """Store the content of a file; return its id, 40 hex digits."""
        return self._put(b"blob", data)

    def put_tree(self, entries: Mapping[str, TreeEntry]) -> str:
        """Store a folder: its names (no slashes) with their blobs, and trees with FOLDER_MODE;
        return its id.
        """
        return self._put(b"tree", format_tree(entries))

    def read_tree(self, object_id: str) -> tuple[tuple[str, TreeEntry], ...]:
        """Return the names and entries of a tree, in git's order."""
        if object_id == EMPTY_TREE:
            return ()
        entries = self._trees.get(object_id)
        if entries is None:
            if len(self._trees) > _MAX_CACHED_TREES:
                self._trees.clear()
            entries = self._trees[object_id] = tuple(
                _parse_tree(self._read_own(object_id, b"tree"))
            )
        return entries

    def read_blob(self, object_id: str) -> bytes:
        """Return the bytes of a blob in this store. Raises MissingObject for shared ones:
        `copy_shared` them first.
        """
        return self._read_own(object_id, b"blob")

    def has(self, object_id: str) -> bool:
        """Return whether an object is in this store (not only among the shared ones)."""
        return (
            object_id in self._written_ids
            or self._path(object_id).exists()
            or self._find_pack(object_id) is not None
        )

    def keep_longer(self, object_id: str) -> None:
        """Let the age of an object in this store start anew: a step's change needs it."""
        try:
            os.utime(self._path(object_id))
        except FileNotFoundError:
            packed_object = self._read_packed(object_id)
            if packed_object is not None:
                self._write_loose(object_id, packed_object.kind, packed_object.data)

    def has_fresh(self, object_id: str) -> bool:
        """Return whether an object is in this store; if it is, its age starts anew."""
        if object_id in self._written_ids:
            return True
        try:
            os.utime(f"{self._objects_name}/{object_id[:2]}/{object_id[2:]}")
        except FileNotFoundError:
            # One that another process has just packed is only stored twice.
            if not any(object_id in pack for pack in self._list_known_packs()):
                return False
        self._written_ids.add(object_id)
        return True

    def put_many(self, objects: "Mapping[str, PackedObject]") -> None:
        """Store objects by their ids: many as one pack, a few each in a file."""
        if len(objects) < _MIN_PACKED_OBJECTS:
            for object_id, each in objects.items():
                self._write_loose(object_id, each.kind, each.data)
            return
        # Imported late, here and below: a small work tree has no pack.
        from codeloop.workspace.snapshot.pack import write_pack

        pack = write_pack(self._objects / "pack", objects)
        with self._packs_lock:
            self._packs = [*self._packs, pack]
        self._written_ids.update(objects)

    def copy_shared(
        self,
        object_ids: Collection[str],
        environment: Mapping[str, str],
        find_size: Callable[[str], int | None],
    ) -> None:
        """Copy shared blobs to this store, so that they stay when their repository drops them;
        skip missing ones.

        `find_size`: returns the size that a blob's file had on the disk, None if it is unknown. A
        blob of another size was converted by git, so it is not the file's content,
        and is skipped too.
        """
        missing = [object_id for object_id in dict.fromkeys(object_ids) if not self.has(object_id)]
        if not missing:
            return
        from codeloop.workspace.snapshot.pack import PackedObject
        from codeloop.workspace.snapshot.shared_blobs import SharedObjects

        blobs: dict[str, PackedObject] = {}
        size = 0
        sources = SharedObjects(self.folder, tuple(self._shared), environment)
        for object_id, data in sources.read_blobs(missing):
            if find_size(object_id) in {None, len(data)}:
                blobs[object_id] = PackedObject(b"blob", data)
                size += len(data)
            if size > MAX_PACK_BYTES or len(blobs) >= MAX_PACK_OBJECTS:
                self.put_many(blobs)
                blobs, size = {}, 0
        self.put_many(blobs)

    def _put(self, kind: bytes, data: bytes) -> str:
        object_id = compute_object_id(kind, data)
        # It is used again, so its age restarts: `prune` removes the oldest.
        if not self.has_fresh(object_id):
            self._write_loose(object_id, kind, data)
        return object_id

    def _write_loose(self, object_id: str, kind: bytes, data: bytes) -> None:
        path = self._path(object_id)
        if object_id[:2] not in self._made_folders:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._made_folders.add(object_id[:2])
        write_atomically(path, zlib.compress(_make_head(kind, data) + data, _COMPRESSION_LEVEL))
        self._written_ids.add(object_id)

    def _read_own(self, object_id: str, kind: bytes) -> bytes:
        try:
            stored_data = zlib.decompress(self._path(object_id).read_bytes())
        except FileNotFoundError as error:
            packed_object = self._read_packed(object_id)
            if packed_object is None:
                raise MissingObject(object_id) from error
            stored_data = _make_head(*packed_object) + packed_object.data
        except (OSError, zlib.error) as error:
            raise MissingObject(object_id) from error
        head, _, data = stored_data.partition(b"\0")
        # Objects are not synced to the disk, so a crash of the machine may leave a damaged one.
        if (
            not head.startswith(kind + b" ")
            or sha1(stored_data, usedforsecurity=False).hexdigest() != object_id
        ):
            raise MissingObject(object_id)
        return data

    def _read_packed(self, object_id: str) -> "PackedObject | None":
        pack = self._find_pack(object_id)
        if pack is None:
            return None
        try:
            return pack.read(object_id)
        except (OSError, ValueError, IndexError, zlib.error):
            return None

    def _list_known_packs(self) -> "list[Pack]":
        if self._packs_read_at < 0:
            with self._packs_lock:
                self._load_new_packs()
        return self._packs

    def _find_pack(self, object_id: str) -> "Pack | None":
        """Return the pack that holds an object; None: none does.
        Packs that another process has written are found.
        """
        with self._packs_lock:
            pack = next((pack for pack in self._packs if object_id in pack), None)
            return pack or next(
                (pack for pack in self._load_new_packs() if object_id in pack), None
            )

    def _load_new_packs(self) -> "list[Pack]":
        """Add the packs that came since the last look; return them."""
        folder = self._objects / "pack"
        try:
            changed_at = folder.stat().st_mtime_ns
        except OSError:
            return []
        if changed_at == self._packs_read_at:
            return []
        from codeloop.workspace.snapshot.pack import Pack, list_packs

        known = {pack.path for pack in self._packs}
        new_packs: list[Pack] = []
        for path in list_packs(folder):
            if path.with_suffix(".pack") not in known:
                with suppress(OSError, ValueError):
                    new_packs.append(Pack(path))
        self._packs = [*self._packs, *new_packs]
        self._packs_read_at = changed_at
        return new_packs

    def _path(self, object_id: str) -> Path:
        return self._objects / object_id[:2] / object_id[2:]

    def list_objects(self) -> Iterator[StoredObject]:
        """Yield every object of this store that has a file of its own."""
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

    def list_packs(self) -> "list[StoredPack]":
        """Return the packs of this store."""
        from codeloop.workspace.snapshot.pack import StoredPack

        with self._packs_lock:
            self._load_new_packs()
            packs: list[StoredPack] = []
            for pack in self._packs:
                with suppress(FileNotFoundError):
                    info = pack.path.stat()
                    packs.append(StoredPack(pack, info.st_size, info.st_mtime))
        return packs

    def prune(self, keep: Collection[str], unused_since: float, max_bytes: int) -> int:
        """Remove objects not in `keep`, the oldest first; return their number.

        All those not used since `unused_since` (s since the epoch) are removed, others until at
        most `max_bytes` are left. A pack goes as a whole, once a fourth of its objects, or fewer,
        are in `keep`: these are stored anew.
        """
        objects, packs = list(self.list_objects()), self.list_packs()
        total = sum(each.size for each in (*objects, *packs))
        removed = 0
        for each in sorted((*objects, *packs), key=lambda each: each.used_at):
            if each.used_at >= unused_since and total <= max_bytes:
                break
            if not isinstance(each, StoredObject):
                count = self._remove_pack(each.pack, keep)
                removed += count
                total -= each.size if count else 0
            elif each.object_id not in keep:
                with suppress(FileNotFoundError):
                    self._path(each.object_id).unlink()
                total -= each.size
                removed += 1
        self._written_ids.clear()
        self._trees.clear()
        return removed

    def _remove_pack(self, pack: "Pack", keep: Collection[str]) -> int:
        """Remove a pack that is hardly needed; return the number of objects that went with it."""
        kept_ids = [object_id for object_id in pack if object_id in keep]
        if len(kept_ids) * 4 > pack.count:
            return 0
        kept_objects = {
            object_id: each for object_id in kept_ids if (each := pack.read(object_id)) is not None
        }
        with self._packs_lock:
            self._packs = [each for each in self._packs if each is not pack]
        pack.remove()
        self._written_ids.clear()
        self.put_many(kept_objects)
        return pack.count - len(kept_ids)


def compute_object_id(kind: bytes, data: bytes) -> str:
    """Return the id that git gives an object."""
    digest = sha1(_make_head(kind, data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def _make_head(kind: bytes, data: bytes) -> bytes:
    return b"%s %d\0" % (kind, len(data))


def format_tree(entries: Mapping[str, TreeEntry]) -> bytes:
    """Return the data of a tree with these names and entries."""
    # git sorts a folder as if its name ended with a slash.
    rows = sorted(
        (os.fsencode(name) + (b"/" if entry.mode == FOLDER_MODE else b""), entry)
        for name, entry in entries.items()
    )
    return b"".join(
        b"%o %s\0%s" % (entry.mode, name.removesuffix(b"/"), bytes.fromhex(entry.blob))
        for name, entry in rows
    )


def _parse_tree(data: bytes) -> Iterator[tuple[str, TreeEntry]]:
    # Each entry: mode, blank, name, NUL, 20 bytes of the id.
    position = 0
    while position < len(data):
        space = data.index(b" ", position)
        end = data.index(0, space)
        name = os.fsdecode(data[space + 1 : end])
        yield name, TreeEntry(int(data[position:space], 8), data[end + 1 : end + 21].hex())
        position = end + 21
