"""Pictures: what is known without drawing them, and drawing them in three ways."""

import base64
import io
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from codeloop.tui.terminal.images import (
    PictureBox,
    Protocol,
    data_of,
    describe_attachment,
    format_size,
    protocol_of,
    read_size,
)
from codeloop.tui.terminal.pictures.encode import draw_picture
from tests.tui.parts import file

BOX = PictureBox(20, 10)


def encoded(form: str, size: tuple[int, int] = (64, 48), **given: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(out, form, **given)
    return out.getvalue()


def url(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("form", "given"), [("PNG", {}), ("GIF", {}), ("JPEG", {}), ("WEBP", {}), ("WEBP", {"lossless": True})]
)
def test_a_picture_says_how_large_it_is(form: str, given: dict[str, Any]) -> None:
    assert read_size(encoded(form, **given)) == (64, 48)


@pytest.mark.parametrize("head", [b"", b"text", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF....WEBPVP8 ", b"GIF89a"])
def test_what_does_not_say_has_no_size(head: bytes) -> None:
    assert read_size(head) == (0, 0)


def test_a_line_of_text_stands_in_its_place() -> None:
    data = encoded("PNG")
    assert describe_attachment(file("shot.png", url=url(data))) == f"[image shot.png 64x48, {format_size(len(data))}]"
    assert describe_attachment(file("a\x1b[2Jb.png", url="data:image/png;base64,!!!")) == "[image a␛[2Jb.png 2 B]"
    assert describe_attachment(file("a.pdf", "application/pdf", "file:///a.pdf")) == "[PDF a.pdf]"
    assert [format_size(size) for size in (0, 999, 34_100, 999_600)] == ["0 B", "999 B", "34 kB", "1.0 MB"]


def test_the_bytes_come_from_the_part_or_its_file(tmp_path: Path) -> None:
    data = encoded("PNG")
    place = tmp_path / "a b.png"
    place.write_bytes(data)
    assert data_of(file("x", url=url(data))) == data
    assert data_of(file("x", url=place.as_uri())) == data
    assert data_of(file("x", url="file:///nowhere.png")) == data_of(file("x", url="https://x.org/a.png")) == b""


@pytest.mark.parametrize(
    ("environment", "attributes", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "", "kitty"),
        ({"TERM": "xterm-ghostty"}, "", "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "", "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "", "iterm"),
        ({"TERM": "foot"}, "", "sixel"),
        ({"TERM": "xterm"}, "\x1b[?62;4;22c", "sixel"),
        ({"TERM": "xterm"}, "\x1b[?62;22c", ""),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "230800"}, "", "kitty"),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x", "TERM_PROGRAM": "iTerm.app"}, "", ""),
        ({"TERM": "xterm-256color"}, "", ""),
        ({}, "", ""),
    ],
)
def test_how_a_terminal_draws(environment: dict[str, str], attributes: str, protocol: str) -> None:
    assert protocol_of(environment, attributes) == protocol


def test_a_picture_keeps_its_shape_within_the_room() -> None:
    assert BOX.fit(1000, 500) == PictureBox(20, 5)
    assert BOX.fit(100, 1000) == PictureBox(2, 10)
    assert BOX.fit(20, 20) == PictureBox(2, 1), "a small one is not made larger"


def test_kitty_gets_png_in_pieces() -> None:
    noise = Image.effect_noise((400, 400), 90)
    out = io.BytesIO()
    noise.save(out, "PNG")
    parts = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", draw_picture(out.getvalue(), "kitty", BOX))
    assert parts[0][0] == "q=2,a=T,f=100,c=20,r=10,m=1"
    assert {keys for keys, _ in parts[1:-1]} == {"q=2,m=1"}
    assert parts[-1][0] == "q=2,m=0"
    assert read_size(base64.b64decode("".join(piece for _, piece in parts))) == (200, 200)


def test_iterm_gets_a_file() -> None:
    shown = draw_picture(encoded("JPEG"), "iterm", BOX)
    found = re.fullmatch(r"\x1b\]1337;File=inline=1;size=(\d+);width=6;height=2;preserveAspectRatio=0:(.*)\x07", shown)
    assert found is not None
    assert len(base64.b64decode(found[2])) == int(found[1])


def test_sixels_are_bands_of_six_rows_by_colour() -> None:
    image = Image.new("RGB", (8, 7), (255, 0, 0))
    image.putpixel((0, 0), (0, 0, 255))
    out = io.BytesIO()
    image.save(out, "PNG")
    shown = draw_picture(out.getvalue(), "sixel", BOX)
    assert shown.startswith('\x1bP0;1q"1;1;8;7#0;2;')
    assert shown.endswith("\x1b\\")
    first, second = shown[: -len("\x1b\\")].rpartition(";")[2].lstrip("0123456789").split("-")
    assert sorted(len(line) > 0 for line in first.split("$")) == [True, True]
    assert re.search(r"#\d!8@$", second), "the seventh row is the first of the second band"
    assert re.search(r"#\d}!7~", first), "the first column lacks the blue pixel"
    assert re.search(r"#\d@$", first), "what is empty to the right is left out"


@pytest.mark.parametrize("protocol", ["kitty", "iterm", "sixel"])
def test_what_is_no_picture_is_refused(protocol: Protocol) -> None:
    with pytest.raises(ValueError, match="can't be decoded"):
        draw_picture(b"\x1b[2Jnot a picture", protocol, BOX)
