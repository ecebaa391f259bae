"""What terminals are given shows the picture, pixel by pixel, and nothing of a file as it came."""

import base64
import io
import re

import pytest
from PIL import Image, ImageChops
from rich.color import ColorSystem
from rich.style import Style

from codeloop.tui.render.attachments import parse_picture_size
from codeloop.tui.render.picture_rows import PictureBox
from codeloop.tui.terminal.pictures.kitty import MAX_SIZE, POSITION_MARKS, make_placeholders
from codeloop.tui.terminal.pictures.picture_encoding import (
    encode_picture,
    encode_rows,
    encode_upload,
)
from codeloop.tui.terminal.pictures.protocol import PictureProtocol
from tests.tui.terminal.picture_terminal import DrawingTerminal

BOX = PictureBox(12, 4)
"""120 by 80 pixels."""
SCREEN = PictureBox(20, 10)
"""The room for a picture on the whole screen."""


def gradient(width: int = 120, height: int = 80, form: str = "PNG") -> bytes:
    image = Image.new("RGB", (width, height))
    image.putdata(
        [(x * 255 // width, y * 255 // height, 128) for y in range(height) for x in range(width)]
    )
    return saved(image, form)


def saved(image: Image.Image, form: str = "PNG") -> bytes:
    out = io.BytesIO()
    image.save(out, form)
    return out.getvalue()


def rows_drawn(data: bytes, protocol: PictureProtocol, colours: int = 200) -> DrawingTerminal:
    terminal = DrawingTerminal(40, 10)
    for line, row in enumerate(encode_rows(data, protocol, BOX, colours)):
        terminal.feed(f"\x1b[{line + 3};6H{row}")
    return terminal


def off(shown: Image.Image | None, wanted: bytes) -> float:
    """Return how far two pictures differ on average, of 255."""
    assert shown is not None
    image = Image.open(io.BytesIO(wanted)).convert("RGB")
    assert shown.size == image.size
    bands = ImageChops.difference(shown.convert("RGB"), image).tobytes()
    return sum(bands) / len(bands)


@pytest.mark.parametrize(("protocol", "most"), [("iterm", 0.0), ("sixel", 6.0)])
def test_the_rows_together_are_the_picture(protocol: PictureProtocol, most: float) -> None:
    terminal = rows_drawn(gradient(), protocol)
    assert terminal.box() == ((2, 5), (6, 17))
    assert off(terminal.picture(), gradient()) <= most


def test_kitty_shows_it_in_cells() -> None:
    terminal = DrawingTerminal(40, 10)
    terminal.feed("".join(encode_upload(gradient(), BOX, 0x123456)))
    for line in range(BOX.rows):
        segment = make_placeholders(0x123456, line, BOX.columns, Style(bgcolor="#101010"))
        assert segment.style is not None
        terminal.feed(
            f"\x1b[{line + 3};6H{segment.style.render(segment.text, color_system=ColorSystem.TRUECOLOR)}"
        )
    terminal.feed("\x1b[1;1H")
    assert terminal.box() == ((2, 5), (6, 17))
    assert off(terminal.picture(), gradient()) == 0


def test_what_is_clear_is_not_drawn() -> None:
    image = Image.new("RGBA", (120, 80), (255, 0, 0, 255))
    image.paste((0, 0, 0, 0), (0, 0, 120, 30))
    shown = rows_drawn(saved(image), "sixel").picture()
    assert shown is not None
    assert shown.getpixel((60, 29)) == (0, 0, 0, 0)
    assert shown.getpixel((60, 30)) == (255, 0, 0, 255)


def test_a_smaller_picture_is_not_made_larger() -> None:
    shown = rows_drawn(gradient(60, 40), "iterm").picture()
    assert shown is not None
    assert shown.size == (120, 80)
    assert shown.getbbox() == (0, 0, 60, 40)


def test_a_terminal_of_few_colours_is_given_no_more() -> None:
    for row in encode_rows(gradient(), "sixel", BOX, 16):
        assert row.count(";2;") <= 16


@pytest.mark.parametrize("form", ["JPEG", "GIF", "WEBP"])
def test_other_formats_are_drawn(form: str) -> None:
    assert off(rows_drawn(gradient(form=form), "iterm").picture(), gradient()) < 12


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x1b[2Jno picture", "can't be decoded"),
        (gradient()[:200], "can't be decoded"),
        (saved(Image.new("RGB", (4, 4)), "BMP"), "can't be decoded"),
        (saved(Image.new("1", (5000, 4000))), "5000 x 4000 pixels"),
    ],
)
def test_what_is_no_picture_or_too_large_is_refused(data: bytes, why: str) -> None:
    for protocol in ("sixel", "iterm"):
        with pytest.raises(ValueError, match=why):
            encode_rows(data, protocol, BOX)


def test_each_mark_is_another() -> None:
    assert len(set(POSITION_MARKS)) == MAX_SIZE == 297


def test_kitty_gets_png_in_pieces() -> None:
    noise = Image.effect_noise((400, 400), 90)
    out = io.BytesIO()
    noise.save(out, "PNG")
    parts = re.findall(
        r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", encode_picture(out.getvalue(), "kitty", SCREEN)
    )
    assert parts[0][0] == "q=2,a=T,f=100,c=20,r=10,m=1"
    assert {keys for keys, _ in parts[1:-1]} == {"q=2,m=1"}
    assert parts[-1][0] == "q=2,m=0"
    assert parse_picture_size(base64.b64decode("".join(piece for _, piece in parts))) == (200, 200)


def test_iterm_gets_a_file() -> None:
    shown = encode_picture(
        saved(Image.new("RGB", (64, 48), (200, 30, 30)), "JPEG"), "iterm", SCREEN
    )
    found = re.fullmatch(
        r"\x1b\]1337;File=inline=1;size=(\d+);width=6;height=2;preserveAspectRatio=0:(.*)\x07",
        shown,
    )
    assert found is not None
    assert len(base64.b64decode(found[2])) == int(found[1])


def test_sixels_are_bands_of_six_rows_by_colour() -> None:
    image = Image.new("RGB", (8, 7), (255, 0, 0))
    image.putpixel((0, 0), (0, 0, 255))
    out = io.BytesIO()
    image.save(out, "PNG")
    shown = encode_picture(out.getvalue(), "sixel", SCREEN)
    assert shown.startswith('\x1bP0;1q"1;1;8;7#0;2;')
    assert shown.endswith("\x1b\\")
    first, second = shown[: -len("\x1b\\")].rpartition(";")[2].lstrip("0123456789").split("-")
    assert sorted(len(line) > 0 for line in first.split("$")) == [True, True]
    assert re.search(r"#\d!8@$", second), "the seventh row is the first of the second band"
    assert re.search(r"#\d}!7~", first), "the first column lacks the blue pixel"
    assert re.search(r"#\d@$", first), "what is empty to the right is left out"


@pytest.mark.parametrize("protocol", ["kitty", "iterm", "sixel"])
def test_what_is_no_picture_is_refused(protocol: PictureProtocol) -> None:
    with pytest.raises(ValueError, match="can't be decoded"):
        encode_picture(b"\x1b[2Jnot a picture", protocol, SCREEN)
