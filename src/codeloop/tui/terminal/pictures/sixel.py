"""Encodes pictures as sixels: in bands of six rows of pixels, in which each colour is written separately."""

import re
from functools import cache

COLOURS = 200
"""Colours of a palette, if the terminal does not tell how many it has."""
CLEAR = 255
"""The palette index of transparent pixels."""
_BAND = 6
_RUN = re.compile(rb"(.)\1{3,}", re.DOTALL)
_CHARACTERS = bytes((63 + bits) & 0xFF for bits in range(256))


def encode_sixels(pixels: bytes, palette: list[int], width: int) -> str:
    """Return the sequence that draws pixels: indices of a palette, row by row. It defines only the used colours."""
    colours = [f"#{at};2;{_format_colour(palette, at)}" for at in sorted({*pixels} - {CLEAR})]
    size = _BAND * width
    bands = (_encode_band(pixels[top : top + size], width) for top in range(0, len(pixels), size))
    return f'\x1bP0;1q"1;1;{width};{len(pixels) // width}' + "".join(colours) + "-".join(bands) + "\x1b\\"


def _format_colour(palette: list[int], at: int) -> str:
    return ";".join(str(round(value * 100 / 255)) for value in palette[3 * at : 3 * at + 3])


def _encode_band(band: bytes, width: int) -> str:
    rows = [band[at : at + width] for at in range(0, len(band), width)]
    return "$".join(f"#{colour}{_encode_line(rows, colour, width)}" for colour in sorted({*band} - {CLEAR}))


def _encode_line(rows: list[bytes], colour: int, width: int) -> str:
    """Return the pixels of one colour in a band: a character for each column, whose lowest bit is the top row."""
    bits = 0
    for at, row in enumerate(rows):
        if colour in row:
            bits |= int.from_bytes(row.translate(_make_table(colour))) << at  # the six rows fit in a byte
    line = bits.to_bytes(width).translate(_CHARACTERS).rstrip(b"?")
    return _RUN.sub(lambda run: b"!%d%c" % (len(run[0]), run[1][0]), line).decode("ascii")


@cache
def _make_table(colour: int) -> bytes:
    """Return a table that translates a colour to 1 and all others to 0."""
    return bytes(number == colour for number in range(256))
