"""Reader of a repository's commits and trees, without running git. Bounded; None: can't be read."""

import os
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.small_files import open_regular
from codeloop.workspace.git.index import read_small

_MAX_BYTES = 256 * 1024
"""The largest object that is read."""
_MAX_PACKS = 8
_FANOUT_END = 8 + 4 * 256
"""Bytes of a pack index before its names: a header, and by first byte the count of names up to it."""
_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_DELTA_BY_OFFSET, _DELTA_BY_NAME = 6, 7
"""Kinds of objects in a pack that are changes of another one, which is named by its offset or its id."""
_MAX_DELTAS = 50
"""The longest chain of deltas that git makes by default."""
_REF_PREFIX = "ref: "


class Row(NamedTuple):
    """An entry of a tree: git's mode, and the object."""

    mode: int
    name: bytes


class GitObjects:
    """The objects of a repository. `common`: the git directory that holds them."""

    def __init__(self, common: Path) -> None:
        self._folder = common / "objects"

    def read_tree_name(self, commit: bytes) -> bytes | None:
        """Return the tree of a commit; None: it can't be read."""
        kind, data = self._read(commit) or (b"", b"")
        return _parse_hex(data[5:45]) if kind == b"commit" and data.startswith(b"tree ") else None

    def read_rows(self, tree: bytes) -> dict[str, Row] | None:
        """Return the rows of a tree by name; None: it can't be read."""
        kind, data = self._read(tree) or (b"", b"")
        if kind != b"tree":
            return None
        rows: dict[str, Row] = {}
        at = 0
        while at < len(data):
            end = data.find(b"\0", at)
            mode, _, name = data[at:end].partition(b" ")
            if end < 0 or not mode.isdigit():
                return None
            rows[os.fsdecode(name)] = Row(int(mode, 8), data[end + 1 : end + 21])
            at = end + 21
        return rows

    def _read(self, name: bytes) -> tuple[bytes, bytes] | None:
        digits = name.hex()
        loose = read_small(self._folder / digits[:2] / digits[2:], _MAX_BYTES)
        if loose:
            head, _, data = _inflate(loose, _MAX_BYTES).partition(b"\0")
            kind, _, size = head.partition(b" ")
            return (kind, data) if size == str(len(data)).encode() else None
        try:
            packs = [path for path in sorted((self._folder / "pack").iterdir()) if path.suffix == ".idx"][:_MAX_PACKS]
        except OSError:
            return None
        for index in packs:
            try:
                with open_regular(index) as file:
                    at = _find_offset(file, name)
                if at is not None:
                    with open_regular(index.with_suffix(".pack")) as file:
                        return self._read_packed(file, at)
            except (OSError, IndexError, ValueError):
                return None
        return None

    def _read_packed(self, pack: int, at: int) -> tuple[bytes, bytes] | None:
        """Read an object at an offset of a pack, resolving deltas. Raises IndexError, ValueError, OSError."""
        changes: list[bytes] = []
        while len(changes) <= _MAX_DELTAS:
            # The header: three bits of the kind, then the size, seven bits a byte and the lowest first (four at first).
            raw = os.pread(pack, 32, at)
            here = 1
            kind, size, shift = raw[0] >> 4 & 7, raw[0] & 15, 4
            while raw[here - 1] & 0x80:
                size |= (raw[here] & 0x7F) << shift
                shift, here = shift + 7, here + 1
            base: tuple[bytes, bytes] | None = None
            back = 0
            if kind == _DELTA_BY_OFFSET:
                back = raw[here] & 0x7F
                while raw[here] & 0x80:
                    here += 1
                    back = ((back + 1) << 7) | (raw[here] & 0x7F)
                here += 1
            elif kind == _DELTA_BY_NAME:
                base = self._read(raw[here : here + 20])
                here += 20
            if size > _MAX_BYTES:
                return None
            # zlib makes data that can't be compressed a little larger, by less than this.
            data = _inflate(os.pread(pack, size + 1024, at + here), size)
            if kind in _KINDS:
                base = (_KINDS[kind], data)
            else:
                changes.append(data)
            if base is not None:
                content = base[1]
                for change in reversed(changes):
                    content = _apply_delta(content, change)
                return base[0], content
            if not back:
                return None
            at -= back
        return None


def read_head_commit(folder: Path, common: Path) -> bytes | None:
    """Return the commit that is checked out; empty: there is none yet; None: unknown."""
    text = read_small(folder / "HEAD", 4096).decode("utf-8", "replace").strip()
    for _ in range(5):
        if not text.startswith(_REF_PREFIX):
            return _parse_hex(text.encode())
        ref = text.removeprefix(_REF_PREFIX)
        if (common / "reftable").exists() or ".." in ref:
            return None  # references are not files there; or the name would lead out of the git directory
        commit = read_small((common if ref.startswith("refs/") else folder) / ref, 4096).decode("utf-8", "replace")
        if not commit:
            return next(_find_packed_ref(common, ref), b"")
        text = commit.strip()
    return None


def _find_packed_ref(common: Path, ref: str) -> Iterator[bytes | None]:
    refs = read_small(common / "packed-refs", _MAX_BYTES)
    if len(refs) == _MAX_BYTES:
        yield None  # the file may be longer than what was read
    end = f" {ref}".encode()
    yield from (_parse_hex(line[:40]) for line in refs.splitlines() if line.endswith(end))


def _parse_hex(digits: bytes) -> bytes | None:
    try:
        name = bytes.fromhex(digits.decode())
    except ValueError:
        return None
    return name if len(name) == 20 else None


def _inflate(raw: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(raw, size) if size else b""
    except zlib.error:
        return b""


def _find_offset(index: int, name: bytes) -> int | None:
    """Return where a pack has an object, from the pack's index (version 2); None: it has none of that name."""
    fanout = os.pread(index, _FANOUT_END, 0)
    if fanout[:8] != b"\xfftOc\0\0\0\2" or len(fanout) < _FANOUT_END:
        raise ValueError("an index of another version")
    counts = [int.from_bytes(fanout[at : at + 4], "big") for at in range(8, _FANOUT_END, 4)]
    first, last = counts[name[0] - 1] if name[0] else 0, counts[name[0]]

    def read_name_at(position: int) -> bytes:
        return os.pread(index, 20, _FANOUT_END + 20 * position)

    position = bisect_left(range(last), name, first, last, key=read_name_at)
    if position == last or read_name_at(position) != name:
        return None
    at = int.from_bytes(os.pread(index, 4, _FANOUT_END + 24 * counts[-1] + 4 * position), "big")
    if at & 0x80000000:  # an offset beyond 2 GB: the rest is a row in the table of 64-bit offsets
        at = int.from_bytes(os.pread(index, 8, _FANOUT_END + 28 * counts[-1] + 8 * (at & 0x7FFFFFFF)), "big")
    return at


def _apply_delta(base: bytes, change: bytes) -> bytes:
    """Apply a delta to an object. Raises IndexError and ValueError for a broken one."""
    _, at = _read_size(change, 0)
    size, at = _read_size(change, at)
    if size > _MAX_BYTES:
        raise ValueError("a large object")
    result = bytearray()
    while at < len(change):
        order = change[at]
        at += 1
        if order & 0x80:  # copy from the base; each lower bit says whether a byte of offset (4) and size (3) follows
            numbers = [0] * 7
            for bit in range(7):
                if order >> bit & 1:
                    numbers[bit] = change[at]
                    at += 1
            start = int.from_bytes(bytes(numbers[:4]), "little")
            result += base[start : start + (int.from_bytes(bytes(numbers[4:]), "little") or 0x10000)]
        else:  # insert as many bytes as the order says
            result += change[at : at + order]
            at += order
        if len(result) > size or not order:
            raise ValueError("a broken change")
    return bytes(result)


def _read_size(change: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        value |= (change[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not change[at - 1] & 0x80:
            return value, at
