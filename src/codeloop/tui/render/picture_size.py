"""Reads the size of a picture from its header, without decoding it: of PNG, GIF, WebP and JPEG."""

import struct

# The markers of JPEG's frame headers, which hold the size: 0xC0 to 0xCF but for the three that begin other segments.
_JPEG_FRAME_MARKERS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


def parse_picture_size(head: bytes) -> tuple[int, int]:
    """Return a picture's width and height, in pixels, from the header in its first bytes; (0, 0): unknown."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", head[16:24])
        if head.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack("<HH", head[6:10])
        if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
            return _read_webp_size(head)
        if head.startswith(b"\xff\xd8"):
            return _read_jpeg_size(head)
    except (struct.error, IndexError):
        pass
    return 0, 0


def _read_webp_size(head: bytes) -> tuple[int, int]:
    """Read the size from the first chunk of a WebP file: VP8X (extended), VP8L (lossless) or VP8 (lossy)."""
    match head[12:16]:
        # Sizes are stored minus 1: in 24 bits each, or in 14 bits each. VP8 stores them as they are, below two flags.
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF


def _read_jpeg_size(head: bytes) -> tuple[int, int]:
    """Skip from segment to segment, by their lengths, to the frame header."""
    # A segment begins with 0xFF, its marker, and its length, which does not count the first two bytes.
    start = 2
    while start + 9 < len(head) and head[start] == 0xFF:
        if head[start + 1] in _JPEG_FRAME_MARKERS:
            height, width = struct.unpack(">HH", head[start + 5 : start + 9])
            return width, height
        start += 2 + int.from_bytes(head[start + 2 : start + 4], "big")
    return 0, 0
