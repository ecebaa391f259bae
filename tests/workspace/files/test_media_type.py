"""Type and size of pictures and documents, from their first bytes alone."""

import struct

import pytest

from codeloop.workspace.files.media_type import Media, inspect_media


@pytest.mark.parametrize(
    ("data", "media"),
    [
        (b"GIF89a" + struct.pack("<HH", 7, 5) + b"\0\0\0;", Media("image/gif", (7, 5))),
        (
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x05\0\x07\x03" + bytes(12),
            Media("image/jpeg", (7, 5)),
        ),
        (b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x06\0\0\x04\0\0", Media("image/webp", (7, 5))),
        (
            b"RIFF\x20\0\0\0WEBPVP8L\x0a\0\0\0\x2f" + (6 | 4 << 14).to_bytes(4, "little"),
            Media("image/webp", (7, 5)),
        ),
        (b"GIF89a", Media("image/gif")),
        (b"\xff\xd8\xff", Media("image/jpeg")),
        (b"%PDF-1.7\n", Media("application/pdf")),
        (b"text", None),
        (b"", None),
    ],
)
def test_type_and_size_are_known(data: bytes, media: Media | None) -> None:
    assert inspect_media(data) == media
