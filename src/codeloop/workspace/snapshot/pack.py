"""Packs, which hold many objects in git's own format,
written and read without git: a file for each takes longer.
"""

import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from hashlib import sha1
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.small_files import write_atomically

_KIND_NUMBERS = {b"tree": 2, b"blob": 3}
_KINDS = {number: kind for kind, number in _KIND_NUMBERS.items()}
# Objects up to this size are stored as they are: to compress one takes longer than to write it.
_MAX_STORED_BYTES = 16_384
# The fastest level: a tool call waits for the snapshot before it.
_COMPRESSION_LEVEL = 1
_INDEX_MAGIC = b"\xfftOc\0\0\0\x02"
_ID_BYTES = 20
_IDS_START = len(_INDEX_MAGIC) + 256 * 4


class PackedObject(NamedTuple):
    """An object of a pack: its kind (`blob` or `tree`) and its data."""

    kind: bytes
    data: bytes


class Pack:
    """A pack in a folder, with its index. Methods raise OSError,
    and ValueError when one of both is damaged.
    """

    def __init__(self, index_path: Path) -> None:
        """Read the index."""
        self.path = index_path.with_suffix(".pack")
        self._index_path = index_path
        data = index_path.read_bytes()
        if not data.startswith(_INDEX_MAGIC) or len(data) < _IDS_START + 2 * _ID_BYTES:
            raise ValueError(f"not the index of a pack: {index_path}")
        self.count = int.from_bytes(data[_IDS_START - 4 : _IDS_START], "big")
        if len(data) != _IDS_START + self.count * (_ID_BYTES + 8) + 2 * _ID_BYTES:
            raise ValueError(f"a damaged index of a pack: {index_path}")
        self._data = data

    def __contains__(self, object_id: str) -> bool:
        """Return whether an object is in the pack."""
        return self._find(object_id) is not None

    def __iter__(self) -> Iterator[str]:
        """Yield the ids of its objects, in order."""
        return (self._read_id(place).hex() for place in range(self.count))

    def read(self, object_id: str) -> PackedObject | None:
        """Return an object; None: it is not in the pack. Its id is not checked."""
        place = self._find(object_id)
        if place is None:
            return None
        start = _IDS_START + self.count * (_ID_BYTES + 4) + place * 4
        offset = int.from_bytes(self._data[start : start + 4], "big")
        with self.path.open("rb") as file:
            file.seek(offset)
            head = file.read(16)
            kind, length, size = _parse_head(head)
            file.seek(offset + length)
            decompressor = zlib.decompressobj()
            pieces: list[bytes] = []
            while not decompressor.eof:
                chunk = file.read(max(size, 4096) + 64)
                if not chunk:
                    raise ValueError(f"a damaged pack: {self.path}")
                pieces.append(decompressor.decompress(chunk))
        return PackedObject(kind, b"".join(pieces))

    def remove(self) -> None:
        """Delete the pack; the index first, so that nobody looks for what is gone."""
        self._index_path.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def _find(self, object_id: str) -> int | None:
        wanted = bytes.fromhex(object_id)
        first = wanted[0]
        low = self._read_count(first - 1) if first else 0
        ids = range(low, self._read_count(first))
        place = low + bisect_left(ids, wanted, key=self._read_id)
        return place if place < ids.stop and self._read_id(place) == wanted else None

    def _read_count(self, first: int) -> int:
        """Return how many ids begin with at most this byte."""
        start = len(_INDEX_MAGIC) + first * 4
        return int.from_bytes(self._data[start : start + 4], "big")

    def _read_id(self, place: int) -> bytes:
        start = _IDS_START + place * _ID_BYTES
        return self._data[start : start + _ID_BYTES]


class StoredPack(NamedTuple):
    """A pack in the store. `size`: of its file in bytes;
    `used_at`: when it was written, s since the epoch.
    """

    pack: Pack
    size: int
    used_at: float


def write_pack(folder: Path, objects: Mapping[str, PackedObject]) -> Pack:
    """Write objects (by their ids) as one pack of this folder. At most 2 GB. Raises OSError."""
    rows: list[tuple[bytes, int, int]] = []
    pieces = [b"PACK" + (2).to_bytes(4, "big") + len(objects).to_bytes(4, "big")]
    offset = len(pieces[0])
    for object_id, each in objects.items():
        packed_data = _make_head(_KIND_NUMBERS[each.kind], len(each.data)) + _deflate(each.data)
        rows.append((bytes.fromhex(object_id), zlib.crc32(packed_data), offset))
        pieces.append(packed_data)
        offset += len(packed_data)
    content = b"".join(pieces)
    checksum = sha1(content, usedforsecurity=False).digest()
    name = f"pack-{checksum.hex()}"
    # git, and we, find a pack by its index, which comes last.
    write_atomically(folder / f"{name}.pack", content + checksum)
    rows.sort()
    counts = [0] * 256
    for row in rows:
        counts[row[0][0]] += 1
    index = b"".join((
        _INDEX_MAGIC,
        *(count.to_bytes(4, "big") for count in accumulate(counts)),
        *(row[0] for row in rows),
        *(row[1].to_bytes(4, "big") for row in rows),
        *(row[2].to_bytes(4, "big") for row in rows),
        checksum,
    ))  # fmt: skip
    index_path = folder / f"{name}.idx"
    write_atomically(index_path, index + sha1(index, usedforsecurity=False).digest())
    return Pack(index_path)


def list_packs(folder: Path) -> list[Path]:
    """Return the indexes of the packs in a folder;
    empty: there are none, or there is no such folder.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".idx")
    except OSError:
        return []


def _make_head(kind: int, size: int) -> bytes:
    """Return the start of an object in a pack: its kind,
    and the size of its data in groups of 7 bits.
    """
    head = bytearray()
    byte = kind << 4 | size & 0xF
    size >>= 4
    while size:
        head.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    head.append(byte)
    return bytes(head)


def _parse_head(head: bytes) -> tuple[bytes, int, int]:
    """Return kind, length of the head and size of the data. Raises ValueError."""
    number, size, shift = head[0] >> 4 & 7, head[0] & 0xF, 4
    length = 1
    while head[length - 1] & 0x80:
        size |= (head[length] & 0x7F) << shift
        shift += 7
        length += 1
    if number not in _KINDS:
        raise ValueError(f"an object of an unknown kind: {number}")
    return _KINDS[number], length, size


def _deflate(data: bytes) -> bytes:
    """Return data as a zlib stream; small data as one block that is not compressed."""
    size = len(data)
    if size > _MAX_STORED_BYTES:
        return zlib.compress(data, _COMPRESSION_LEVEL)
    sizes = size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    return b"\x78\x01\x01" + sizes + data + zlib.adler32(data).to_bytes(4, "big")
