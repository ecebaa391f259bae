"""Reads the attachments of messages without decoding pictures: their bytes, a picture's size,
and their description.

The conversation shows the description in place of each attachment,
and reserves room for a picture by its size.
"""

import base64
import binascii
import struct
from pathlib import Path
from urllib.parse import unquote, urlsplit

from codeloop.kit.small_files import read_start
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.part import FilePart
from codeloop.tui.render.formats import format_size

# A larger file is cut off, so that it can't fill the memory.
MAX_ATTACHMENT_BYTES = 20_000_000
_MAX_NAME_LENGTH = 60
# PNG, GIF and WebP have their size in the first 30 bytes;
# that of a JPEG follows metadata such as a thumbnail.
_MAX_HEAD_LENGTH = 65_536
"""Characters of base64 at the start of a picture in which its size is looked for."""


def read_attachment(part: FilePart) -> bytes:
    """Return the bytes of an attachment: from its `data:` URL or its file.
    Empty if this machine can't read them.
    """
    # The file of a stored message may be gone by now, or be on the machine of another client.
    try:
        if part.url.startswith("data:"):
            return _decode_base64(part.url.partition(",")[2])[:MAX_ATTACHMENT_BYTES]
        url = urlsplit(part.url)
        if url.scheme == "file" and url.netloc in {"", "localhost"}:
            return read_start(Path(unquote(url.path)), MAX_ATTACHMENT_BYTES)
    except (OSError, ValueError):
        pass
    return b""


def describe_attachment(part: FilePart) -> str:
    """Return a text that describes an attachment, such as `[image shot.png 640x480, 34 kB]`."""
    name = part.filename or (
        "" if part.url.startswith("data:") else unquote(urlsplit(part.url).path)
    )
    facts: list[str] = []
    if data := _find_base64(part):
        width, height = read_picture_size(part)
        if width:
            facts.append(f"{width}x{height}")
        # Four characters of base64 hold three bytes; decoding all of a large picture for
        # its size would take too long.
        facts.append(format_size(len(data.rstrip("=")) * 3 // 4))
    words = [_name_kind(part.mime), one_line(name, _MAX_NAME_LENGTH), ", ".join(facts)]
    return f"[{' '.join(filter(None, words))}]"


def _name_kind(mime: str) -> str:
    if mime.startswith("image/"):
        return "image"
    return "PDF" if mime == "application/pdf" else "file"


def read_picture_size(part: FilePart) -> tuple[int, int]:
    """Return the width and height, in pixels, of a picture in a `data:` URL; (0, 0): unknown."""
    data = _find_base64(part)
    return parse_picture_size(_decode_base64(data[:_MAX_HEAD_LENGTH])) if data else (0, 0)


def _find_base64(part: FilePart) -> str:
    """Return the base64 text of a `data:` URL; "": the attachment has another URL."""
    return part.url.partition(",")[2] if part.url.startswith("data:") else ""


def _decode_base64(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except (ValueError, binascii.Error):
        return b""


# The markers of JPEG's frame headers, which hold the size: 0xC0 to 0xCF but for the three
# that begin other segments.
_JPEG_FRAME_MARKERS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})


def parse_picture_size(head: bytes) -> tuple[int, int]:
    """Return a picture's width and height, in pixels, from the header in its first bytes;
    (0, 0): unknown.
    """
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
    """Read the size from the first chunk of a WebP file: VP8X (extended),
    VP8L (lossless) or VP8 (lossy).
    """
    match head[12:16]:
        # Sizes are stored minus 1: in 24 bits each, or in 14 bits each.
        # VP8 stores them as they are, below two flags.
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(
                head[27:30], "little"
            ) + 1
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF


def _read_jpeg_size(head: bytes) -> tuple[int, int]:
    """Skip from segment to segment, by their lengths, to the frame header."""
    # A segment begins with 0xFF, its marker, and its length,
    # which does not count the first two bytes.
    start = 2
    while start + 9 < len(head) and head[start] == 0xFF:
        if head[start + 1] in _JPEG_FRAME_MARKERS:
            height, width = struct.unpack(">HH", head[start + 5 : start + 9])
            return width, height
        start += 2 + int.from_bytes(head[start + 2 : start + 4], "big")
    return 0, 0
