"""Reads the commits and trees of a repository, loose or packed, without running git.
The sizes read are bounded.
"""

import os
import re
import zlib
from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.small_files import open_regular, read_start_or_empty
from codeloop.workspace.git.head import parse_hex

# The largest object that is read; a tree of this size has thousands of entries.
_MAX_OBJECT_BYTES = 256 * 1024
_MAX_PACKS = 8
# Bytes of a pack's index before its ids: a header,
# and for each first byte the count of ids up to it.
_FANOUT_END = 8 + 4 * 256
_OBJECT_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
# Kinds of objects in a pack that are changes of another one,
# which is named by its offset or its id.
_DELTA_BY_OFFSET, _DELTA_BY_ID = 6, 7
# The longest chain of deltas that git makes by default.
_MAX_DELTAS = 50
_MODE = rb"[0-7]+"


class GitTreeEntry(NamedTuple):
    """An entry of a tree: git's mode, and the id of the blob or tree."""

    mode: int
    object_id: bytes


class _GitObject(NamedTuple):
    """An object: its kind (`commit`, `tree`, `blob` or `tag`), and its content."""

    kind: bytes
    content: bytes


class _PackedHeader(NamedTuple):
    """The header of an object in a pack.

    `kind`: a key of _OBJECT_KINDS, or that of a delta; `size`: of the unpacked data; `length`: of
    the header. The base of a delta lies `base_distance` bytes before it in the pack,
    or is named by `base_id`.
    """

    kind: int
    size: int
    base_distance: int
    base_id: bytes
    length: int


class GitObjects:
    """The objects of a repository. `common`: the git directory that holds them."""

    def __init__(self, common: Path) -> None:
        self._folder = common / "objects"

    def read_tree_id(self, commit: bytes) -> bytes | None:
        """Return the id of a commit's tree; None: it can't be read."""
        commit_object = self._read_object(commit)
        if (
            commit_object is None
            or commit_object.kind != b"commit"
            or not commit_object.content.startswith(b"tree ")
        ):
            return None
        return parse_hex(commit_object.content[5:45])

    def read_first_parent(self, commit: bytes) -> bytes | None:
        """Return the id of a commit's first parent; None: it has none, or can't be read."""
        commit_object = self._read_object(commit)
        if (
            commit_object is None
            or commit_object.kind != b"commit"
            or commit_object.content[46:53] != b"parent "
        ):
            return None
        return parse_hex(commit_object.content[53:93])

    def find_entry(self, tree: bytes, path: str) -> GitTreeEntry | None:
        """Return the entry of a tree at a path; None: there is none, or it can't be read."""
        entry: GitTreeEntry | None = None
        for name in path.split("/"):
            entry = (self.read_tree(tree) or {}).get(name)
            if entry is None:
                return None
            tree = entry.object_id
        return entry

    def read_tree(self, tree: bytes) -> dict[str, GitTreeEntry] | None:
        """Return the entries of a tree by name; None: it can't be read."""
        tree_object = self._read_object(tree)
        if tree_object is None or tree_object.kind != b"tree":
            return None
        content = tree_object.content
        entries: dict[str, GitTreeEntry] = {}
        start = 0
        # Each entry: mode, blank, name, NUL, 20 bytes of the id.
        while start < len(content):
            end = content.find(b"\0", start)
            mode, _, name = content[start:end].partition(b" ")
            if end < 0 or not re.fullmatch(_MODE, mode):
                return None
            entries[os.fsdecode(name)] = GitTreeEntry(int(mode, 8), content[end + 1 : end + 21])
            start = end + 21
        return entries

    def _read_object(self, object_id: bytes, max_deltas: int = _MAX_DELTAS) -> _GitObject | None:
        """Return an object; None: it is missing, too large or broken,
        or made by more than `max_deltas` deltas.
        """
        digits = object_id.hex()
        loose = read_start_or_empty(self._folder / digits[:2] / digits[2:], _MAX_OBJECT_BYTES)
        if loose:
            # A loose object begins with its kind and size: `tree 123`, NUL.
            head, _, content = _inflate(loose, _MAX_OBJECT_BYTES).partition(b"\0")
            kind, _, size = head.partition(b" ")
            return _GitObject(kind, content) if size == str(len(content)).encode() else None
        try:
            packs = [
                path for path in sorted((self._folder / "pack").iterdir()) if path.suffix == ".idx"
            ][:_MAX_PACKS]
        except OSError:
            return None
        for index in packs:
            try:
                with open_regular(index) as file:
                    offset = _find_offset(file, object_id)
                if offset is not None:
                    with open_regular(index.with_suffix(".pack")) as file:
                        return self._read_packed(file, offset, max_deltas)
            except (OSError, IndexError, ValueError):
                return None
        return None

    def _read_packed(self, pack: int, offset: int, max_deltas: int) -> _GitObject | None:
        """Read an object at an offset of a pack, resolving deltas.
        Raises IndexError, ValueError, OSError.
        """
        # From the object that is read, each delta leads to its base, until one is a whole object.
        deltas: list[bytes] = []
        while len(deltas) <= max_deltas:
            header = _parse_packed_header(os.pread(pack, 32, offset))
            if header.size > _MAX_OBJECT_BYTES:
                return None
            # zlib makes data that can't be compressed a little larger, by less than this.
            data = _inflate(os.pread(pack, header.size + 1024, offset + header.length), header.size)
            base: _GitObject | None = None
            if header.kind in _OBJECT_KINDS:
                base = _GitObject(_OBJECT_KINDS[header.kind], data)
            else:
                deltas.append(data)
                if header.base_id:
                    base = self._read_object(header.base_id, max_deltas - len(deltas))
            if base is not None:
                content = base.content
                for delta in reversed(deltas):
                    content = _apply_delta(content, delta)
                return _GitObject(base.kind, content)
            if not header.base_distance:
                return None
            offset -= header.base_distance
        return None


def _parse_packed_header(raw: bytes) -> _PackedHeader:
    """Parse the header of an object in a pack. Raises IndexError for a short one."""
    # Three bits of the kind, then the size: four bits in the first byte, seven in each further one,
    # the lowest first.
    kind, size, shift = raw[0] >> 4 & 7, raw[0] & 15, 4
    length = 1
    while raw[length - 1] & 0x80:
        size |= (raw[length] & 0x7F) << shift
        shift += 7
        length += 1
    base_distance, base_id = 0, b""
    if kind == _DELTA_BY_OFFSET:
        base_distance = raw[length] & 0x7F
        while raw[length] & 0x80:
            length += 1
            base_distance = ((base_distance + 1) << 7) | (raw[length] & 0x7F)
        length += 1
    elif kind == _DELTA_BY_ID:
        base_id = raw[length : length + 20]
        length += 20
    return _PackedHeader(kind, size, base_distance, base_id, length)


def _inflate(raw: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(raw, size) if size else b""
    except zlib.error:
        return b""


def _find_offset(index: int, object_id: bytes) -> int | None:
    """Return the offset of an object in a pack, from the pack's index (version 2);
    None: it is not in this pack.
    """
    fanout = os.pread(index, _FANOUT_END, 0)
    if fanout[:8] != b"\xfftOc\0\0\0\2" or len(fanout) < _FANOUT_END:
        raise ValueError("an index of another version")
    counts = [
        int.from_bytes(fanout[start : start + 4], "big") for start in range(8, _FANOUT_END, 4)
    ]
    first, last = counts[object_id[0] - 1] if object_id[0] else 0, counts[object_id[0]]

    def read_id_at(position: int) -> bytes:
        return os.pread(index, 20, _FANOUT_END + 20 * position)

    position = bisect_left(range(last), object_id, first, last, key=read_id_at)
    if position == last or read_id_at(position) != object_id:
        return None
    # After the ids (20 bytes each) come checksums (4 each), offsets (4 each),
    # and 64-bit offsets (8 each).
    offset = int.from_bytes(os.pread(index, 4, _FANOUT_END + 24 * counts[-1] + 4 * position), "big")
    # An offset beyond 2 GB: the other bits are its position in the table of 64-bit offsets.
    if offset & 0x80000000:
        offset = int.from_bytes(
            os.pread(index, 8, _FANOUT_END + 28 * counts[-1] + 8 * (offset & 0x7FFFFFFF)), "big"
        )
    return offset


def _apply_delta(base: bytes, delta: bytes) -> bytes:
    """Apply a delta to the content of its base.
    Raises IndexError and ValueError for a broken one.
    """
    # A delta begins with the size of its base, which is not needed, and that of the result.
    _, position = _parse_size(delta, 0)
    size, position = _parse_size(delta, position)
    if size > _MAX_OBJECT_BYTES:
        raise ValueError("a large object")
    result = bytearray()
    while position < len(delta):
        instruction = delta[position]
        position += 1
        if instruction & 0x80:
            # Copy from the base. Each lower bit says whether a byte of the offset (4)
            # and the size (3) follows.
            numbers = [0] * 7
            for bit in range(7):
                if instruction >> bit & 1:
                    numbers[bit] = delta[position]
                    position += 1
            start = int.from_bytes(bytes(numbers[:4]), "little")
            # A size of 0 stands for 64 KiB.
            length = int.from_bytes(bytes(numbers[4:]), "little") or 0x10000
            result += base[start : start + length]
        else:
            # Insert as many bytes as the instruction's value.
            result += delta[position : position + instruction]
            position += instruction
        if len(result) > size or not instruction:
            raise ValueError("a broken delta")
    return bytes(result)


def _parse_size(delta: bytes, position: int) -> tuple[int, int]:
    """Parse a size of variable length: seven bits a byte, the lowest first.
    Return it and the position after it.
    """
    value, shift = 0, 0
    while True:
        byte = delta[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not byte & 0x80:
            return value, position
