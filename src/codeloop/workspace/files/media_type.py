"""The type and size of a picture or document, from the first bytes of its file, without an imaging library."""

import struct
from collections.abc import Callable

from msgspec import Struct

_JPEG_SIZES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = {0x01, *range(0xD0, 0xD8)}
Size = tuple[int, int]


class Media(Struct, frozen=True):
    """A picture or a PDF. `mime`: its type; `size`: width and height in pixels, None when unknown."""

    mime: str
    size: Size | None = None

    @property
    def is_image(self) -> bool:
        """Return whether it is a picture."""
        return self.mime.startswith("image/")


def media_type(head: bytes) -> str | None:
    """Return the type of a file that can be attached (PNG, JPEG, GIF, WebP, PDF) by its first bytes, else None."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC if head.startswith(magic)), None)


def inspect(data: bytes) -> Media | None:
    """Return type and size of a whole file that can be attached, else None."""
    mime = media_type(data)
    if mime is None:
        return None
    reader = _SIZES.get(mime)
    try:
        size = reader(data) if reader else None
    except (struct.error, IndexError):
        size = None
    return Media(mime, size if size and min(size) > 0 else None)


def _read_png_size(data: bytes) -> Size | None:
    if data[12:16] != b"IHDR" or b"IEND" not in data[-64:]:
        return None
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def _read_gif_size(data: bytes) -> Size:
    width, height = struct.unpack("<HH", data[6:10])
    return width, height


def _read_jpeg_size(data: bytes) -> Size | None:
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        kind = data[at + 1]
        if kind == 0xFF:
            at += 1
        elif kind in _JPEG_BARE:
            at += 2
        elif kind in _JPEG_SIZES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _read_webp_size(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None


_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_SIZES: dict[str, Callable[[bytes], Size | None]] = {
    "image/png": _read_png_size,
    "image/jpeg": _read_jpeg_size,
    "image/gif": _read_gif_size,
    "image/webp": _read_webp_size,
}
