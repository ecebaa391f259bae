"""Pictures are brought to what services take, or refused with the reason."""

import struct
import zlib
from io import BytesIO
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from codeloop.workspace.files.image import FittedImage, ImageRefused, fit_image
from tests.support.examples import scale_examples

SIDE, SIZE = 100, 20_000
RED, BLUE = (255, 0, 0), (0, 0, 255)


def plain(width: int, height: int, mode: str = "RGB", colour: Any = None) -> Image.Image:
    return Image.new(mode, (width, height), colour or (RED if mode == "RGB" else 0))


def noise(width: int, height: int) -> Image.Image:
    """Return the same picture of noise in every run."""
    return Image.frombytes("RGB", (width, height), Random(1).randbytes(3 * width * height))


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def opened(picture: FittedImage) -> Image.Image:
    image = Image.open(BytesIO(picture.data))
    image.load()
    assert Image.MIME[image.format or ""] == picture.mime
    assert image.size == picture.size
    return image


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_what_fits_is_given_byte_for_byte(form: str) -> None:
    data = encoded(plain(SIDE, 7), form)
    picture = fit_image(data, SIDE, SIZE)
    assert (picture.data, picture.size, picture.original) == (data, (SIDE, 7), None)
    assert picture.note == f"{SIDE} x 7 pixels"


@pytest.mark.parametrize(
    ("form", "mime"), [("PNG", "png"), ("JPEG", "jpeg"), ("WEBP", "webp"), ("GIF", "png")]
)
def test_what_is_too_wide_is_scaled_down_and_keeps_its_proportions(form: str, mime: str) -> None:
    picture = fit_image(encoded(plain(400, 200), form), SIDE, SIZE)
    assert opened(picture).size == (100, 50)
    assert picture.mime == f"image/{mime}"
    assert picture.note == "100 x 50 pixels, scaled down from 400 x 200"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_what_has_too_many_bytes_is_packed_tighter(form: str) -> None:
    data = encoded(noise(SIDE, SIDE), form, **({"quality": 100} if form != "PNG" else {}))
    picture = fit_image(data, SIDE, len(data) // 3)
    assert len(picture.data) <= len(data) // 3
    opened(picture)


def test_a_limit_that_only_a_smaller_picture_meets_makes_it_smaller() -> None:
    picture = fit_image(encoded(noise(SIDE, SIDE), "PNG"), SIDE, 1_500)
    assert len(picture.data) <= 1_500
    assert opened(picture).width < SIDE


def test_a_limit_that_nothing_meets_is_an_error() -> None:
    with pytest.raises(ImageRefused, match="below 10 bytes"):
        fit_image(encoded(noise(SIDE, SIDE), "PNG"), SIDE, 10)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK", "YCbCr"])
def test_every_way_to_hold_colours_is_read(mode: str) -> None:
    form = {"CMYK": "JPEG", "YCbCr": "JPEG"}.get(mode, "PNG")
    assert opened(fit_image(encoded(plain(300, 10, mode), form), SIDE, SIZE)).size == (100, 3)


def test_a_grey_picture_of_16_bits_keeps_its_shades() -> None:
    image = Image.new("I;16", (300, 10), 0x8000)
    picture = opened(fit_image(encoded(image, "PNG"), SIDE, SIZE))
    assert (picture.mode, picture.getpixel((50, 1))) == ("L", 0x80)


def test_a_transparent_picture_that_becomes_a_jpeg_stands_on_white() -> None:
    image = noise(SIDE, SIDE).convert("RGBA")
    image.putalpha(0)
    picture = fit_image(encoded(image, "PNG"), SIDE, 8_000)
    assert picture.mime == "image/jpeg"
    assert opened(picture).getpixel((50, 50)) == (255, 255, 255)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_photograph_is_turned_as_the_camera_says(orientation: int) -> None:
    image = plain(40, 20)
    image.paste(BLUE, (0, 0, 20, 10))  # the first quarter of the stored picture is blue
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = fit_image(encoded(image, "JPEG", exif=exif, quality=95), SIDE, SIZE)
    turned = opened(picture)
    assert turned.size == ((40, 20) if orientation < 5 else (20, 40))
    assert not turned.getexif()
    right, low = {2: (1, 0), 3: (1, 1), 4: (0, 1), 5: (0, 0), 6: (1, 0), 7: (1, 1), 8: (0, 1)}[
        orientation
    ]
    pixel = turned.getpixel((3 + right * (turned.width - 7), 3 + low * (turned.height - 7)))
    assert isinstance(pixel, tuple)
    assert pixel[2] > 200 > 60 > pixel[0]
    assert "re-encoded" in picture.note


def bomb(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


def test_a_picture_that_would_unpack_to_too_much_is_refused_with_its_size() -> None:
    with pytest.raises(ImageRefused, match="100000 x 100000 pixels, and at most 50,000,000"):
        fit_image(bomb(100_000, 100_000))


WHOLE = [encoded(noise(30, 20), form) for form in ("PNG", "JPEG", "GIF", "WEBP")]


@pytest.mark.parametrize("data", WHOLE)
@pytest.mark.parametrize("part", [0.1, 0.4, 0.6, 0.9])
def test_a_picture_that_is_cut_off_is_refused(data: bytes, part: float) -> None:
    with pytest.raises(ImageRefused, match=r"broken|not a PNG"):
        fit_image(data[: int(len(data) * part)])


@pytest.mark.parametrize("data", [b"", b"text", b"%PDF-1.7\n", b"BM\0\0"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(ImageRefused, match="not a PNG, JPEG, GIF or WebP"):
        fit_image(data)


@settings(max_examples=scale_examples(150))
@given(data=st.sampled_from(WHOLE), at=st.floats(0, 1), bits=st.binary(min_size=1, max_size=8))
def test_a_damaged_picture_is_refused_or_given_whole_and_never_breaks_anything(
    data: bytes, at: float, bits: bytes
) -> None:
    place = int(at * (len(data) - len(bits)))
    try:
        picture = fit_image(data[:place] + bits + data[place + len(bits) :], SIDE, SIZE)
    except ImageRefused:
        return
    assert max(picture.size) <= SIDE
    assert len(picture.data) <= SIZE


def with_chunk(image: bytes, kind: bytes, body: bytes, *, is_sound: bool = False) -> bytes:
    """Return a PNG with one more chunk behind its header;
    its checksum is wrong unless it is sound.
    """
    after_header = 8 + 25
    checksum = zlib.crc32(kind + body) ^ (0 if is_sound else 1)
    chunk = struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)
    return image[:after_header] + chunk + image[after_header:]


@pytest.mark.parametrize(
    ("kind", "body", "is_sound"),
    [
        (b"tEXt", b"Title\0A picture", False),
        (b"pHYs", b"\0\0", True),
        (b"zTXt", b"Title\0\0no zlib", True),
        (b"tIME", b"", False),
        (b"eXIf", b"MM\0*broken", True),
        (b"iCCP", b"p\0\0broken", False),
        (b"quIz", b"x" * 40, False),
    ],
)
def test_a_damaged_optional_chunk_does_not_keep_a_picture_back(
    kind: bytes, body: bytes, is_sound: bool
) -> None:
    whole = encoded(plain(10, 8), "PNG")
    picture = fit_image(with_chunk(whole, kind, body, is_sound=is_sound))
    assert opened(picture).convert("RGB").getpixel((0, 0)) == RED


def test_a_damaged_chunk_of_the_picture_itself_is_refused() -> None:
    whole = bytearray(with_chunk(encoded(plain(10, 8), "PNG"), b"tEXt", b"x\0y"))
    whole[whole.index(b"IDAT") + 6] ^= 0xFF
    with pytest.raises(ImageRefused, match="broken"):
        fit_image(bytes(whole))


def test_a_jpeg_with_broken_exif_data_is_passed_on() -> None:
    broken = encoded(plain(10, 8), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x05broken")
    assert opened(fit_image(broken)).size == (10, 8)
