"""Reads a repository's index: the blob and stat of each tracked file,
without running git and without a lock.

Snapshots, the sandbox, `tree_state.py`, listings of folders and the checks of what a command
touches use it. The format: git's `index-format.txt`.
"""

import os
from functools import lru_cache
from pathlib import Path
from struct import Struct as Layout
from typing import NamedTuple

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.small_files import read_bounded, read_start_or_empty

# An entry without its path: ctime and mtime (seconds, nanoseconds), device, inode, mode, uid, gid,
# size, blob, flags.
_ENTRY_LAYOUT = Layout(">IIIIIIIIII20sH")
_ENTRY_BYTES = _ENTRY_LAYOUT.size
_KIND_BITS = 0o170000
_SUBMODULE_MODE = 0o160000
# Bits of an entry's flags.
_EXTENDED_FLAG, _STAGE_BITS = 0x4000, 0x3000
# A bit of its extended flags.
_INTENT_TO_ADD_FLAG = 0x2000
_CHECKSUM_BYTES = 20
_CONFIG_BYTES = 64 * 1024
# The largest index that is read for a command.
_INDEX_BYTES = 32 * 1024 * 1024
# The largest index that is read for a snapshot: one of some five million files.
_SNAPSHOT_INDEX_BYTES = 512 * 1024 * 1024
_LOW_32_BITS = 0xFFFFFFFF


class IndexEntry(NamedTuple):
    """One tracked file: its blob (empty after `git add --intent-to-add`),
    and its stat when git last read it.

    Where the stat may belong to earlier content, `mtime_ns` is -1, which no file has.
    `size` and `inode` are cut to 32 bits, as git keeps them.
    """

    blob: bytes
    mode: int
    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int

    def is_unchanged(self, info: os.stat_result) -> bool:
        """Return whether a file is unchanged since git last read it."""
        return (
            self.mtime_ns == info.st_mtime_ns
            and self.ctime_ns == info.st_ctime_ns
            and self.size == info.st_size & _LOW_32_BITS
            and self.inode == info.st_ino & _LOW_32_BITS
        )


# Folder (relative to the work tree, "" for its top) -> name -> entry.
TrackedFiles = dict[str, dict[str, IndexEntry]]


class ParsedIndex(NamedTuple):
    """The contents of an index.

    `trees`: folder -> the id of the tree object that git has written for exactly the
    files that are tracked in it;
    `submodules`: their paths.
    """

    tracked: TrackedFiles
    trees: dict[str, bytes]
    submodules: tuple[str, ...] = ()


class IndexedRepository(Struct, frozen=True):
    """A repository with its index. `folder`: its own git directory;
    `common`: the one that holds its objects.

    `tracked` and `trees` are those of a ParsedIndex. They are empty when the index was not asked
    for, can't be read, is of a kind that is not read here (split, sparse), or may name blobs with
    other line ends than the files have.
    """

    folder: Path
    common: Path
    tracked: TrackedFiles = struct_field(default_factory=dict[str, dict[str, IndexEntry]])
    trees: dict[str, bytes] = struct_field(default_factory=dict[str, bytes])

    @property
    def objects_folder(self) -> Path:
        """The folder of its objects."""
        return self.common / "objects"


def open_repository(top: Path, *, with_index: bool) -> IndexedRepository | None:
    """Read the repository of the work tree with this top;
    None when there is none, or it uses SHA-256.
    """
    folder = find_git_folder(top)
    if folder is None:
        return None
    common = find_common_folder(folder)
    config = read_start_or_empty(common / "config", _CONFIG_BYTES)
    if b"sha256" in config.lower():
        return None
    # git may have converted line ends when it stored a file: the blob then differs
    # from the file on the disk.
    if not with_index or _converts_line_ends(config):
        return IndexedRepository(folder, common)
    try:
        file = folder / "index"
        data = read_bounded(file, _SNAPSHOT_INDEX_BYTES)
        index = parse_index(data, file.stat().st_mtime_ns)
    except (OSError, ValueError, IndexError):
        return IndexedRepository(folder, common)
    return IndexedRepository(folder, common, index.tracked, index.trees)


def read_tracked_files(top: Path) -> TrackedFiles:
    """Return the tracked files of the work tree with this top; {} when its index can't be read."""
    folder = find_git_folder(top)
    try:
        info = (folder / "index").stat() if folder is not None else None
    except OSError:
        return {}
    if folder is None or info is None or info.st_size > _INDEX_BYTES:
        return {}
    return _read_index(folder / "index", info.st_mtime_ns, info.st_size, info.st_ino)


# The stamp is only a part of the cache's key: a changed index is parsed again.
@lru_cache(maxsize=4)
def _read_index(index: Path, changed_at_ns: int, *_stamp: int) -> TrackedFiles:
    try:
        return parse_index(read_bounded(index, _INDEX_BYTES), changed_at_ns).tracked
    except (OSError, ValueError, IndexError):
        return {}


def list_submodule_paths(index: Path) -> tuple[str, ...]:
    """Return the paths that a repository tracks as other repositories;
    none where its index can't be read.
    """
    try:
        info = index.stat()
    except OSError:
        return ()
    return _parse_submodule_paths(index, info.st_mtime_ns, info.st_size, info.st_ino)


@lru_cache(maxsize=16)
def _parse_submodule_paths(index: Path, *_stamp: int) -> tuple[str, ...]:
    try:
        data = read_bounded(index, _INDEX_BYTES)
        # Most repositories have none, and a search for the bytes is much faster than parsing.
        return parse_index(data, 0).submodules if _SUBMODULE_MODE.to_bytes(4, "big") in data else ()
    except (OSError, ValueError, IndexError):
        return ()


def parse_index(data: bytes, changed_at_ns: int) -> ParsedIndex:
    """Parse an index of version 2 to 4.

    `changed_at_ns`: the modification time of the index.
    A file that is not older may have changed after git read it.

    Raises ValueError and IndexError for an index of another kind, or a broken one.
    """
    if data[:4] != b"DIRC" or len(data) < 32:
        raise ValueError("not an index")
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if version not in {2, 3, 4}:
        raise ValueError(f"index version {version}")
    tracked: TrackedFiles = {}
    submodules: list[str] = []
    offset, path = 12, b""
    last_folder, names = b"", tracked.setdefault("", {})
    unpack = _ENTRY_LAYOUT.unpack_from
    for _ in range(count):
        if offset + _ENTRY_BYTES > len(data):
            raise ValueError("a short index")
        ctime_s, ctime_ns, mtime_s, mtime_ns, _, inode, mode, _, _, size, blob, flags = unpack(
            data, offset
        )
        path_start = offset + _ENTRY_BYTES
        is_intent_to_add = False
        if flags & _EXTENDED_FLAG:
            extended_flags = int.from_bytes(data[path_start : path_start + 2], "big")
            is_intent_to_add = bool(extended_flags & _INTENT_TO_ADD_FLAG)
            path_start += 2
        if version == 4:
            # The path shares its start with the one before: a count of bytes to drop from that,
            # then the rest.
            dropped, path_start = _parse_number(data, path_start)
            end = data.index(0, path_start)
            path = path[: len(path) - dropped] + data[path_start:end]
            offset = end + 1
        else:
            end = data.index(0, path_start)
            path = data[path_start:end]
            offset += (end - offset + 8) // 8 * 8  # entries are padded with 1 to 8 NULs
        if mode & _KIND_BITS == _SUBMODULE_MODE:
            submodules.append(os.fsdecode(path))
            continue
        if flags & _STAGE_BITS:
            continue  # one side of a conflict in a merge
        folder, _, name = path.rpartition(b"/")
        # Entries are sorted, so most are in the folder of the one before.
        if folder != last_folder:
            last_folder = folder
            names = tracked.setdefault(os.fsdecode(folder), {})
        mtime = mtime_s * 1_000_000_000 + mtime_ns
        if is_intent_to_add:
            blob = b""
        if is_intent_to_add or mtime >= changed_at_ns:
            mtime = -1
        names[os.fsdecode(name)] = IndexEntry(
            blob, mode, mtime, ctime_s * 1_000_000_000 + ctime_ns, size, inode
        )
    return ParsedIndex(tracked, _parse_extensions(data, offset), tuple(submodules))


def _parse_extensions(data: bytes, offset: int) -> dict[str, bytes]:
    """Return the trees that the index's extension `TREE` holds.

    Raises ValueError for a mandatory extension, whose name is in lower case: without it
    the index can't be understood.
    """
    trees: dict[str, bytes] = {}
    while offset + 8 <= len(data) - _CHECKSUM_BYTES:
        if data[offset : offset + 1].islower():
            raise ValueError(f"an index with the extension {data[offset : offset + 4]!r}")
        end = offset + 8 + int.from_bytes(data[offset + 4 : offset + 8], "big")
        if data[offset : offset + 4] == b"TREE":
            trees = _parse_tree_extension(data[offset + 8 : end])
        offset = end
    return trees


def _parse_tree_extension(rows: bytes) -> dict[str, bytes]:
    """Parse the extension's rows: each folder is followed by those in it.
    A folder that has changed has no tree.
    """
    trees: dict[str, bytes] = {}
    offset = 0
    # The folders around the next one, each with the number of its subfolders
    # that are still to come.
    parents = [("", 1)]
    while offset < len(rows):
        line = rows.index(b"\n", offset)
        name, _, numbers = rows[offset:line].partition(b"\0")
        file_count, _, folder_count = numbers.partition(b" ")
        offset = line + 1
        folder, remaining = parents.pop()
        if remaining > 1:
            parents.append((folder, remaining - 1))
        path = f"{folder}/{os.fsdecode(name)}" if folder else os.fsdecode(name)
        # -1 for a folder that has changed.
        if int(file_count) >= 0:
            trees[path] = rows[offset : offset + 20]
            offset += 20
        if int(folder_count):
            parents.append((path, int(folder_count)))
    return trees


def _parse_number(data: bytes, offset: int) -> tuple[int, int]:
    """Parse a number of variable length as index version 4 has it.
    Return it and the position after it.
    """
    value = data[offset] & 0x7F
    while data[offset] & 0x80:
        offset += 1
        value = ((value + 1) << 7) | (data[offset] & 0x7F)
    return value, offset + 1


def _converts_line_ends(config: bytes) -> bool:
    """Return whether a configuration may make git change the line ends of every text file."""
    # `autocrlf = true` or `eol = crlf`, by any section: whether it is `[core]` is not checked.
    lines = (line.strip().lower().replace(b" ", b"") for line in config.splitlines())
    return any(
        line.startswith((b"autocrlf", b"eol=crlf")) and not line.endswith(b"=false")
        for line in lines
    )
