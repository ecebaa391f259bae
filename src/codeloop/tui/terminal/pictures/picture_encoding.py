"""Encodes pictures as sequences that a terminal draws.

A file is decoded and encoded again, so that none of its bytes reach the terminal unchanged. That is slow, so the UI
calls these functions in a thread.
"""

import base64
import io
import struct
from typing import TYPE_CHECKING

from codeloop.schema.bounds.tui import PICTURE_PIXELS
from codeloop.tui.render.picture_rows import PictureBox
from codeloop.tui.terminal.pictures.protocol import PictureProtocol
from codeloop.tui.terminal.pictures.sixel import DEFAULT_COLOURS, TRANSPARENT, encode_sixels

if TYPE_CHECKING:
    from PIL.Image import Image

# Pillow has decoders of many rare formats, which would only be more code for a hostile file to attack.
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
# Kitty refuses longer ones.
_CHUNK_LENGTH = 4096
"""Characters of data in one command of kitty."""
# A sixel is either drawn or not.
_OPACITY_TABLE = bytes([255] * 128 + [0] * 128)
"""Translates the opacity of a pixel to 255, if it counts as transparent, or 0."""
# Pillow's decoders let all of these out for broken files.
_DECODING_ERRORS = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    LookupError,
    TypeError,
    OverflowError,
    MemoryError,
    struct.error,
)


def encode_picture(data: bytes, protocol: PictureProtocol, box: PictureBox) -> str:
    """Return the output that draws a picture at the cursor, fitted to a box. Raises ValueError for invalid data."""
    image = _scale(data, box)
    room = box.fit(image.width, image.height)
    if protocol == "sixel":
        return _encode_sixels(image, DEFAULT_COLOURS)
    if protocol == "iterm":
        return _encode_file(image, room.columns, room.rows)
    return "".join(make_kitty_commands(f"a=T,f=100,c={room.columns},r={room.rows}", _encode_png(image)))


def encode_rows(
    data: bytes, protocol: PictureProtocol, box: PictureBox, colours: int = DEFAULT_COLOURS
) -> tuple[str, ...]:
    """Return the output that draws each row of a picture that fills a box. Raises ValueError for invalid data."""
    image = _fill_box(data, box)
    width, height = box.cell
    rows = (image.crop((0, line * height, image.width, (line + 1) * height)) for line in range(box.rows))
    if protocol == "iterm":
        return tuple(_encode_file(row, box.columns, 1) for row in rows)
    few, palette = _quantise(image, colours)
    pixels, size = few.tobytes(), image.width * height
    return tuple(
        encode_sixels(pixels[line * size : (line + 1) * size], palette, box.columns * width) for line in range(box.rows)
    )


def encode_upload(data: bytes, box: PictureBox, number: int) -> tuple[str, ...]:
    """Return the commands that upload a picture that fills a box to kitty. Raises ValueError for invalid data."""
    return make_kitty_commands(
        f"a=T,U=1,f=100,i={number},c={box.columns},r={box.rows}", _encode_png(_fill_box(data, box))
    )


def make_kitty_commands(keys: str, data: bytes) -> tuple[str, ...]:
    """Return the commands of kitty that transfer data, and that it must not answer."""
    text = base64.b64encode(data).decode("ascii")
    chunks = [text[at : at + _CHUNK_LENGTH] for at in range(0, len(text), _CHUNK_LENGTH)] or [""]
    return tuple(
        f"\x1b_Gq=2,{'' if at else f'{keys},'}m={int(at < len(chunks) - 1)};{chunk}\x1b\\"
        for at, chunk in enumerate(chunks)
    )


def _scale(data: bytes, box: PictureBox) -> "Image":
    """Return a picture with transparency, no larger than a box."""
    from PIL import Image

    room = (box.columns * box.cell[0], box.rows * box.cell[1])
    try:
        source = Image.open(io.BytesIO(data), formats=_FORMATS)
        size = source.size
        # The size comes from the header, before the pixels are decoded, which would fill the memory.
        if size[0] * size[1] <= PICTURE_PIXELS.value:
            # A JPEG is decoded at half, a quarter or an eighth of its size if that is enough.
            source.draft(None, room)
            image = source.convert("RGBA")
            image.thumbnail(room)
            return image
    except (*_DECODING_ERRORS, Image.DecompressionBombError) as error:
        raise ValueError(f"it can't be decoded: {error}") from error
    raise ValueError(f"it has {size[0]} x {size[1]} pixels")


def _fill_box(data: bytes, box: PictureBox) -> "Image":
    """Return a picture padded to a box with transparency."""
    from PIL import Image

    image = _scale(data, box)
    canvas = Image.new("RGBA", (box.columns * box.cell[0], box.rows * box.cell[1]))
    canvas.paste(image, (0, 0))
    return canvas


def _quantise(image: "Image", colours: int) -> tuple["Image", list[int]]:
    """Return a picture as indices of a palette, and the palette; transparent pixels have the index TRANSPARENT."""
    from PIL import Image

    plain = image.convert("RGB")
    few = plain.quantize(palette=plain.quantize(colours), dither=Image.Dither.FLOYDSTEINBERG)
    palette = few.getpalette() or []
    clear = Image.frombytes("L", image.size, image.getchannel("A").tobytes().translate(_OPACITY_TABLE))
    few.paste(TRANSPARENT, mask=clear)
    return few, palette


def _encode_sixels(image: "Image", colours: int) -> str:
    """Return the output that draws a picture with a palette of at most so many colours."""
    few, palette = _quantise(image, colours)
    return encode_sixels(few.tobytes(), palette, few.width)


def _encode_file(image: "Image", columns: int, rows: int) -> str:
    """Return iTerm's sequence that draws a picture as a file, stretched over columns and rows."""
    data = _encode_png(image)
    options = f"inline=1;size={len(data)};width={columns};height={rows};preserveAspectRatio=0"
    return f"\x1b]1337;File={options}:{base64.b64encode(data).decode('ascii')}\x07"


def _encode_png(image: "Image") -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
