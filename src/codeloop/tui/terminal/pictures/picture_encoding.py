"""Encodes pictures as sequences that a terminal draws.

A file is decoded and encoded again, so that none of its bytes reach the terminal unchanged. That is
slow, so the UI calls these functions in a thread.
"""

import base64
import io
import struct
from typing import TYPE_CHECKING

from codeloop.schema.bounds.tui import PICTURE_PIXELS
from codeloop.tui.render.picture_rows import PictureBox
from codeloop.tui.terminal.pictures.kitty import make_upload_commands
from codeloop.tui.terminal.pictures.protocol import PictureProtocol
from codeloop.tui.terminal.pictures.sixel import DEFAULT_COLOURS, TRANSPARENT, encode_sixels

if TYPE_CHECKING:
    from PIL.Image import Image

# Pillow has decoders of many rare formats, which would only be more code for
# a hostile file to attack.
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
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
    """Return the output that draws a picture at the cursor, fitted to a box.
    Raises ValueError for invalid data.
    """
    image = _scale_down(data, box)
    if protocol == "sixel":
        indexed_image, palette = _quantise(image, DEFAULT_COLOURS)
        return encode_sixels(indexed_image.tobytes(), palette, image.width)
    fitted_box = box.fit(image.width, image.height)
    if protocol == "iterm":
        return _encode_file(image, fitted_box.columns, fitted_box.rows)
    # Transmit and display a PNG, in so many columns and rows.
    options = f"a=T,f=100,c={fitted_box.columns},r={fitted_box.rows}"
    return "".join(make_upload_commands(options, _encode_png(image)))


def encode_rows(
    data: bytes, protocol: PictureProtocol, box: PictureBox, colours: int = DEFAULT_COLOURS
) -> tuple[str, ...]:
    """Return the output that draws each row of a picture that fills a box.
    Raises ValueError for invalid data.
    """
    image = _fill_box(data, box)
    height = box.cell.height
    if protocol == "iterm":
        rows = (
            image.crop((0, line * height, image.width, (line + 1) * height))
            for line in range(box.rows)
        )
        return tuple(_encode_file(row, columns=box.columns, rows=1) for row in rows)
    indexed_image, palette = _quantise(image, colours)
    # A byte for each pixel.
    pixels, row_size = indexed_image.tobytes(), image.width * height
    return tuple(
        encode_sixels(pixels[line * row_size : (line + 1) * row_size], palette, image.width)
        for line in range(box.rows)
    )


def encode_upload(data: bytes, box: PictureBox, number: int) -> tuple[str, ...]:
    """Return the commands that upload a picture that fills a box to kitty.
    Raises ValueError for invalid data.
    """
    # As in `encode_picture`, with the picture's number (`i`),
    # to be displayed only where its placeholders are (`U`).
    options = f"a=T,U=1,f=100,i={number},c={box.columns},r={box.rows}"
    return make_upload_commands(options, _encode_png(_fill_box(data, box)))


def _scale_down(data: bytes, box: PictureBox) -> "Image":
    """Return a picture with transparency, no larger than a box."""
    from PIL import Image

    room = (box.columns * box.cell.width, box.rows * box.cell.height)
    try:
        source = Image.open(io.BytesIO(data), formats=_FORMATS)
        width, height = source.size
        # The size comes from the header, before the pixels are decoded,
        # which would fill the memory.
        if width * height <= PICTURE_PIXELS.value:
            # A JPEG is decoded at half, a quarter or an eighth of its size if that is enough.
            source.draft(None, room)
            image = source.convert("RGBA")
            image.thumbnail(room)
            return image
    except (*_DECODING_ERRORS, Image.DecompressionBombError) as error:
        raise ValueError(f"it can't be decoded: {error}") from error
    raise ValueError(f"it has {width} x {height} pixels")


def _fill_box(data: bytes, box: PictureBox) -> "Image":
    """Return a picture padded to a box with transparency."""
    from PIL import Image

    image = _scale_down(data, box)
    canvas = Image.new("RGBA", (box.columns * box.cell.width, box.rows * box.cell.height))
    canvas.paste(image, (0, 0))
    return canvas


def _quantise(image: "Image", colours: int) -> tuple["Image", list[int]]:
    """Return a picture as indices of a palette, and the palette;
    transparent pixels have the index TRANSPARENT.
    """
    from PIL import Image

    opaque_image = image.convert("RGB")
    # First without dithering, for the palette: Pillow dithers only with a palette
    # that is passed to it.
    palette_image = opaque_image.quantize(colours)
    indexed_image = opaque_image.quantize(palette=palette_image, dither=Image.Dither.FLOYDSTEINBERG)
    palette = indexed_image.getpalette() or []
    mask = Image.frombytes(
        "L", image.size, image.getchannel("A").tobytes().translate(_OPACITY_TABLE)
    )
    indexed_image.paste(TRANSPARENT, mask=mask)
    return indexed_image, palette


def _encode_file(image: "Image", columns: int, rows: int) -> str:
    """Return iTerm's sequence that draws a picture as a file, stretched over columns and rows."""
    data = _encode_png(image)
    options = f"inline=1;size={len(data)};width={columns};height={rows};preserveAspectRatio=0"
    return f"\x1b]1337;File={options}:{base64.b64encode(data).decode('ascii')}\x07"


def _encode_png(image: "Image") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
