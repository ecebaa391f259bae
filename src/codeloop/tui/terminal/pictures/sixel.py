"""Encodes pictures as sixels: in bands of six rows of pixels,
in which each colour is written separately.
"""

import re
from functools import cache

DEFAULT_COLOURS = 200
"""Colours of a palette: at most, and if the terminal does not tell how many it has."""
TRANSPARENT = 255
"""The palette index of transparent pixels, which no colour has,
since there are at most DEFAULT_COLOURS.
"""
_BAND_ROWS = 6
# A repetition is written as `!`, the number and the character,
# which is shorter from four characters on.
_REPEATED_CHARACTER = rb"(?s)(.)\1{3,}"
# A sixel is written as the character 63 plus its six bits, so that `?` is an empty one.
_SIXEL_CHARACTERS = bytes((63 + bits) & 0xFF for bits in range(256))


def encode_sixels(pixels: bytes, palette: list[int], width: int) -> str:
    """Return the sequence that draws pixels: indices of a palette, row by row.
    It defines only the used colours.

    `palette`: red, green and blue, 0 to 255, of each index, one after the other.
    """
    colours = [
        f"#{index};2;{_format_colour(palette, index)}"
        for index in sorted({*pixels} - {TRANSPARENT})
    ]
    band_size = _BAND_ROWS * width
    bands = (
        _encode_band(pixels[start : start + band_size], width)
        for start in range(0, len(pixels), band_size)
    )
    # `0;1`: pixels that are not drawn stay as they are. `1;1`: pixels are square.
    return (
        f'\x1bP0;1q"1;1;{width};{len(pixels) // width}'
        + "".join(colours)
        + "-".join(bands)
        + "\x1b\\"
    )


def _format_colour(palette: list[int], index: int) -> str:
    # Sixels measure red, green and blue in percent.
    return ";".join(str(round(value * 100 / 255)) for value in palette[3 * index : 3 * index + 3])


def _encode_band(band: bytes, width: int) -> str:
    """Return the sixels of a band, colour by colour; `$` goes back to its start."""
    rows = [band[start : start + width] for start in range(0, len(band), width)]
    return "$".join(
        f"#{colour}{_encode_line(rows, colour, width)}"
        for colour in sorted({*band} - {TRANSPARENT})
    )


def _encode_line(rows: list[bytes], colour: int, width: int) -> str:
    """Return the pixels of one colour in a band: a character for each column,
    whose lowest bit is the top row.
    """
    # A row is one large number with a byte for each pixel, so that all pixels are shifted at once,
    # which is much faster than a loop over them. The six rows fit in the bits of a byte.
    bits = 0
    for row_index, row in enumerate(rows):
        if colour in row:
            bits |= int.from_bytes(row.translate(_make_table(colour))) << row_index
    line = bits.to_bytes(width).translate(_SIXEL_CHARACTERS).rstrip(b"?")
    return re.sub(
        _REPEATED_CHARACTER, lambda run: b"!%d%c" % (len(run[0]), run[1][0]), line
    ).decode("ascii")


@cache
def _make_table(colour: int) -> bytes:
    """Return a table that translates a colour to 1 and all others to 0."""
    return bytes(number == colour for number in range(256))
