"""Detects the type and size of a picture or PDF by the first bytes of its file,
without an imaging library.
"""

import struct
from collections.abc import Callable

from msgspec import Struct

# Markers of frames, which hold the size; three in that range mean something else.
_JPEG_SIZE_MARKERS = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_MARKERS_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD8)}
# Width and height in pixels.
PixelSize = tuple[int, int]


class Media(Struct, frozen=True):
    """A picture or a PDF. `mime`: its type; `size`: width and height in pixels,
    None when unknown.
    """

    mime: str
    size: PixelSize | None = None

    @property
    def is_image(self) -> bool:
        """Whether it is a picture."""
        return self.mime.startswith("image/")


def detect_media_type(head: bytes) -> str | None:
    """Return the MIME type of a file that can be attached (PNG, JPEG, GIF, WebP,
    PDF) by its first bytes, else None.
    """
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC_BYTES if head.startswith(magic)), None)


def inspect_media(data: bytes) -> Media | None:
    """Return the type and size of a file that can be attached, or None.
    `data`: all of its bytes.
    """
    mime = detect_media_type(data)
    if mime is None:
        return None
    reader = _SIZE_READERS.get(mime)
    try:
        size = reader(data) if reader else None
    except (struct.error, IndexError):
        size = None
    return Media(mime, size if size and min(size) > 0 else None)


def _read_png_size(data: bytes) -> PixelSize | None:
    # Without its last chunk, the file was cut off.
    if data[12:16] != b"IHDR" or b"IEND" not in data[-64:]:
        return None
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def _read_gif_size(data: bytes) -> PixelSize:
    width, height = struct.unpack("<HH", data[6:10])
    return width, height


def _read_jpeg_size(data: bytes) -> PixelSize | None:
    # A JPEG is a list of segments: 0xFF, a marker, and for most markers a length with the content.
    start = 2
    while start + 4 <= len(data):
        if data[start] != 0xFF:
            return None
        marker = data[start + 1]
        if marker == 0xFF:  # padding
            start += 1
        elif marker in _JPEG_MARKERS_WITHOUT_LENGTH:
            start += 2
        elif marker in _JPEG_SIZE_MARKERS:
            height, width = struct.unpack(">HH", data[start + 5 : start + 9])
            return width, height
        else:
            start += 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    return None


def _read_webp_size(data: bytes) -> PixelSize | None:
    # WebP has three formats: extended, lossless and lossy.
    # The first two store the width and height less one.
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


_MAGIC_BYTES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_SIZE_READERS: dict[str, Callable[[bytes], PixelSize | None]] = {
    "image/png": _read_png_size,
    "image/jpeg": _read_jpeg_size,
    "image/gif": _read_gif_size,
    "image/webp": _read_webp_size,
}
