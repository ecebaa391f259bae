"""What terminals are given shows the picture, pixel by pixel, and nothing of a file as it came."""

import io

import pytest
from PIL import Image, ImageChops
from rich.color import ColorSystem
from rich.style import Style

from codeloop.tui.terminal.images import PictureBox, Protocol
from codeloop.tui.terminal.pictures.encode import draw_rows, upload_picture
from codeloop.tui.terminal.pictures.kitty import MARKS, MAX_SIZE, cells
from tests.tui.terminal.picture_terminal import DrawingTerminal

BOX = PictureBox(12, 4)
"""120 by 80 pixels."""


def gradient(width: int = 120, height: int = 80, form: str = "PNG") -> bytes:
    image = Image.new("RGB", (width, height))
    image.putdata([(x * 255 // width, y * 255 // height, 128) for y in range(height) for x in range(width)])
    return saved(image, form)


def saved(image: Image.Image, form: str = "PNG") -> bytes:
    out = io.BytesIO()
    image.save(out, form)
    return out.getvalue()


def rows_drawn(data: bytes, protocol: Protocol, colours: int = 200) -> DrawingTerminal:
    terminal = DrawingTerminal(40, 10)
    for line, row in enumerate(draw_rows(data, protocol, BOX, colours)):
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
def test_the_rows_together_are_the_picture(protocol: Protocol, most: float) -> None:
    terminal = rows_drawn(gradient(), protocol)
    assert terminal.box() == ((2, 5), (6, 17))
    assert off(terminal.picture(), gradient()) <= most


def test_kitty_shows_it_in_cells() -> None:
    terminal = DrawingTerminal(40, 10)
    terminal.feed("".join(upload_picture(gradient(), BOX, 0x123456)))
    for line in range(BOX.rows):
        segment = cells(0x123456, line, BOX.columns, Style(bgcolor="#101010"))
        assert segment.style is not None
        terminal.feed(f"\x1b[{line + 3};6H{segment.style.render(segment.text, color_system=ColorSystem.TRUECOLOR)}")
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
    for row in draw_rows(gradient(), "sixel", BOX, 16):
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
            draw_rows(data, protocol, BOX)


def test_each_mark_is_another() -> None:
    assert len(set(MARKS)) == MAX_SIZE == 297
