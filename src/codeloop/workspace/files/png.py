"""The chunks of PNG images: a damaged metadata chunk does not make the picture unreadable."""

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FRAME = 12  # bytes of a chunk without its content: length, kind, checksum
_OPTIONAL = 0x20
"""The bit in the first letter of a chunk's kind that says that the picture can be shown without it."""
_TRANSPARENCY = b"tRNS"


def without_optional_chunks(data: bytes) -> bytes | None:
    """Return an image without its optional chunks; its transparency stays if it is valid.

    None: it is not made of whole chunks.
    """
    if not data.startswith(_SIGNATURE):
        return None
    chunks = [_SIGNATURE]
    at = len(_SIGNATURE)
    while at + _FRAME <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        end = at + _FRAME + length
        if end > len(data):
            return None
        kind, body = data[at + 4 : at + 8], data[at + 4 : end - 4]
        is_sound = struct.unpack_from(">I", data, end - 4)[0] == zlib.crc32(body)
        if not kind[0] & _OPTIONAL or (kind == _TRANSPARENCY and is_sound):
            chunks.append(data[at:end])
        at = end
        if kind == b"IEND":
            return b"".join(chunks)
    return None
