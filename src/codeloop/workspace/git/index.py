"""Parser of a repository's index: the blob and stat of each tracked file, without running git and without a lock."""

import os
from functools import lru_cache
from pathlib import Path
from struct import Struct as Layout
from typing import NamedTuple

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.kit.git import find_common_folder, find_git_folder
from codeloop.kit.small_files import read_bounded, read_start

_ENTRY = Layout(">IIIIIIIIII20sH")
_SUBMODULE = 0o160000
_EXTENDED, _STAGE = 0x4000, 0x3000  # bits of an entry's flags
_INTENT_TO_ADD = 0x2000  # a bit of its extended flags
_CONFIG_BYTES = 64 * 1024
_INDEX_BYTES = 32 * 1024 * 1024
_SNAPSHOT_INDEX_BYTES = 512 * 1024 * 1024  # an index of five million files
_LOW_32_BITS = 0xFFFFFFFF


class Tracked(NamedTuple):
    """One tracked file: its blob (empty after `git add --intent-to-add`), and its stat when git last read it.

    Where the stat may belong to earlier content, `mtime_ns` is -1, which no file has.
    `size` and `inode` are cut to 32 bits, as git keeps them.
    """

    blob: bytes
    mode: int
    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int

    def same(self, info: os.stat_result) -> bool:
        """Return whether a file is unchanged since git last read it."""
        return (
            self.mtime_ns == info.st_mtime_ns
            and self.ctime_ns == info.st_ctime_ns
            and self.size == info.st_size & _LOW_32_BITS
            and self.inode == info.st_ino & _LOW_32_BITS
        )


class Repository(Struct, frozen=True):
    """A repository as a snapshot needs it. `folder`: its own git directory; `common`: the one that holds its objects.

    `tracked`: folder (relative to the work tree, "" for its top) -> name -> entry. Empty when the index
    is of a kind that is not read here (split, sparse, SHA-256). `trees`: folder -> the tree object that git has written
    for exactly the files that are tracked in it.
    """

    folder: Path
    common: Path
    tracked: dict[str, dict[str, Tracked]] = struct_field(default_factory=dict[str, dict[str, Tracked]])
    trees: dict[str, bytes] = struct_field(default_factory=dict[str, bytes])

    @property
    def objects(self) -> Path:
        """The folder of its objects."""
        return self.common / "objects"


def open_repository(top: Path, *, with_index: bool) -> Repository | None:
    """Read the repository whose work tree has its top here; None when it has none, or one that can't be read."""
    folder = find_git_folder(top)
    if folder is None:
        return None
    common = find_common_folder(folder)
    config = read_small(common / "config", _CONFIG_BYTES)
    if b"sha256" in config.lower():
        return None
    # git may have converted line ends when it stored a file: the blob then differs from the file on the disk.
    if not with_index or _converts(config):
        return Repository(folder, common)
    try:
        file = folder / "index"
        data = read_bounded(file, _SNAPSHOT_INDEX_BYTES)
        changed_at = file.stat().st_mtime_ns
        tracked, trees = parse_index(data, changed_at)
    except (OSError, ValueError, IndexError):
        tracked, trees = {}, {}
    return Repository(folder, common, tracked, trees)


def read_tracked_files(top: Path) -> dict[str, dict[str, Tracked]]:
    """Return the tracked files of the work tree with its top here, by folder and name; {} where it can't be read."""
    folder = find_git_folder(top)
    try:
        info = (folder / "index").stat() if folder is not None else None
    except OSError:
        return {}
    if folder is None or info is None or info.st_size > _INDEX_BYTES:
        return {}
    return _read_index(folder / "index", info.st_mtime_ns, info.st_size, info.st_ino)


@lru_cache(maxsize=4)
def _read_index(index: Path, changed_at: int, *_stamp: int) -> dict[str, dict[str, Tracked]]:
    try:
        return parse_index(read_bounded(index, _INDEX_BYTES), changed_at)[0]
    except (OSError, ValueError, IndexError):
        return {}


def list_submodules(index: Path) -> tuple[str, ...]:
    """Return the paths that a repository tracks as other repositories; none where its index can't be read."""
    try:
        info = index.stat()
    except OSError:
        return ()
    return _list_submodules(index, info.st_mtime_ns, info.st_size, info.st_ino)


@lru_cache(maxsize=16)
def _list_submodules(index: Path, *_stamp: int) -> tuple[str, ...]:
    submodules: list[str] = []
    try:
        data = read_bounded(index, _INDEX_BYTES)
        if _SUBMODULE.to_bytes(4, "big") in data:
            parse_index(data, 0, submodules)
    except (OSError, ValueError, IndexError):
        return ()
    return tuple(submodules)


def parse_index(
    data: bytes, looked_at: int, submodules: list[str] | None = None
) -> tuple[dict[str, dict[str, Tracked]], dict[str, bytes]]:
    """Parse an index of version 2 to 4: `tracked` and `trees` of a Repository.

    `looked_at`: the modification time of the index in ns. A file that is not older may have changed after git read it.
    `submodules`: filled with the paths of submodules.

    Raises ValueError for an index of another kind, or a broken one.
    """
    if data[:4] != b"DIRC" or len(data) < 32:
        raise ValueError("not an index")
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if version not in {2, 3, 4}:
        raise ValueError(f"index version {version}")
    tracked_entries: dict[str, dict[str, Tracked]] = {}
    at, path = 12, b""
    last_folder, names = b"", tracked_entries.setdefault("", {})
    unpack = _ENTRY.unpack_from
    for _ in range(count):
        if at + 62 > len(data):
            raise ValueError("a short index")
        cs, cn, ms, mn, _, inode, mode, _, _, size, blob, flags = unpack(data, at)
        here = at + 62
        intent = False
        if flags & _EXTENDED:
            intent = bool(int.from_bytes(data[here : here + 2], "big") & _INTENT_TO_ADD)
            here += 2
        if version == 4:  # a path is written as what differs from the one before
            drop, here = _read_offset(data, here)
            end = data.index(0, here)
            path = path[: len(path) - drop] + data[here:end]
            at = end + 1
        else:
            end = data.index(0, here)
            path = data[here:end]
            at += (end - at + 8) // 8 * 8  # entries are padded with 1 to 8 NULs
        if mode & 0o170000 == _SUBMODULE and submodules is not None:
            submodules.append(os.fsdecode(path))
        if flags & _STAGE or mode & 0o170000 == _SUBMODULE:
            continue  # a stage: one side of a conflict in a merge
        folder, _, name = path.rpartition(b"/")
        if folder != last_folder:  # entries are sorted, so most are in the folder of the one before
            last_folder = folder
            names = tracked_entries.setdefault(os.fsdecode(folder), {})
        mtime = ms * 1_000_000_000 + mn
        if intent:
            blob = b""
        if intent or mtime >= looked_at:
            mtime = -1
        names[os.fsdecode(name)] = Tracked(blob, mode, mtime, cs * 1_000_000_000 + cn, size, inode)
    return tracked_entries, _find_trees(data, at)


def _find_trees(data: bytes, at: int) -> dict[str, bytes]:
    """Return the trees that the index's extension `TREE` holds.

    Raises ValueError for a mandatory extension, whose name is in lower case: without it the index can't be understood.
    """
    trees: dict[str, bytes] = {}
    while at + 8 <= len(data) - 20:  # the last 20 bytes are a checksum
        if data[at : at + 1].islower():
            raise ValueError(f"an index with the extension {data[at : at + 4]!r}")
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8], "big")
        if data[at : at + 4] == b"TREE":
            trees = _read_trees(data[at + 8 : end])
        at = end
    return trees


def _read_trees(rows: bytes) -> dict[str, bytes]:
    """Parse the extension's rows: each folder is followed by those in it. A folder that has changed has no tree."""
    trees: dict[str, bytes] = {}
    at, above = 0, [("", 1)]
    while at < len(rows):
        line = rows.index(b"\n", at)
        name, _, numbers = rows[at:line].partition(b"\0")
        count, _, below = numbers.partition(b" ")
        at = line + 1
        folder, remaining = above.pop()
        if remaining > 1:
            above.append((folder, remaining - 1))
        path = f"{folder}/{os.fsdecode(name)}" if folder else os.fsdecode(name)
        if int(count) >= 0:
            trees[path] = rows[at : at + 20]
            at += 20
        if int(below):
            above.append((path, int(below)))
    return trees


def _read_offset(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of variable length as git's index version 4 has it."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def read_small(file: Path, size: int) -> bytes:
    """Read the start of a regular file; nothing when it can't be read."""
    try:
        return read_start(file, size)
    except OSError:
        return b""


def _converts(config: bytes) -> bool:
    """Return whether a configuration makes git change line ends of every text file."""
    lines = (line.strip().lower().replace(b" ", b"") for line in config.splitlines())
    return any(line.startswith((b"autocrlf", b"eol=crlf")) and not line.endswith(b"=false") for line in lines)
