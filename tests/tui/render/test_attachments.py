"""Attachments are described, measured and read without decoding a picture."""

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from codeloop.tui.render.attachments import describe_attachment, parse_picture_size, read_attachment
from codeloop.tui.render.formats import format_size
from tests.tui.parts import file


def encoded(form: str, size: tuple[int, int] = (64, 48), **given: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(out, form, **given)
    return out.getvalue()


def url(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("form", "given"),
    [("PNG", {}), ("GIF", {}), ("JPEG", {}), ("WEBP", {}), ("WEBP", {"lossless": True})],
)
def test_a_picture_says_how_large_it_is(form: str, given: dict[str, Any]) -> None:
    assert parse_picture_size(encoded(form, **given)) == (64, 48)


@pytest.mark.parametrize(
    "head", [b"", b"text", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF....WEBPVP8 ", b"GIF89a"]
)
def test_what_does_not_say_has_no_size(head: bytes) -> None:
    assert parse_picture_size(head) == (0, 0)


def test_a_line_of_text_stands_in_its_place() -> None:
    data = encoded("PNG")
    assert (
        describe_attachment(file("shot.png", url=url(data)))
        == f"[image shot.png 64x48, {format_size(len(data))}]"
    )
    assert (
        describe_attachment(file("a\x1b[2Jb.png", url="data:image/png;base64,!!!"))
        == "[image a␛[2Jb.png 2 B]"
    )
    assert describe_attachment(file("a.pdf", "application/pdf", "file:///a.pdf")) == "[PDF a.pdf]"
    assert [format_size(size) for size in (0, 999, 34_100, 999_600)] == [
        "0 B",
        "999 B",
        "34 kB",
        "1.0 MB",
    ]


def test_the_bytes_come_from_the_part_or_its_file(tmp_path: Path) -> None:
    data = encoded("PNG")
    place = tmp_path / "a b.png"
    place.write_bytes(data)
    assert read_attachment(file("x", url=url(data))) == data
    assert read_attachment(file("x", url=place.as_uri())) == data
    assert (
        read_attachment(file("x", url="file:///nowhere.png"))
        == read_attachment(file("x", url="https://x.org/a.png"))
        == b""
    )
