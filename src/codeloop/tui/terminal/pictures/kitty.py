"""Kitty's protocol for pictures: the commands that upload and delete one,
and the placeholders that show it.

A placeholder is a character that shows one cell of a picture, and moves with the text. Its
combining marks select the row and the column of the picture, its colour selects the picture:
https://sw.kovidgoyal.net/kitty/graphics-protocol/#unicode-placeholders
"""

import base64

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

PLACEHOLDER = "\U0010eeee"
# The protocol prescribes which combining marks are used, and their order.
POSITION_MARKS = "".join(
    chr(mark)
    for first, last in (
        (0x305, 0x305), (0x30D, 0x30E), (0x310, 0x310), (0x312, 0x312), (0x33D, 0x33F), (0x346, 0x346), (0x34A, 0x34C),
        (0x350, 0x352), (0x357, 0x357), (0x35B, 0x35B), (0x363, 0x36F), (0x483, 0x487), (0x592, 0x595), (0x597, 0x599),
        (0x59C, 0x5A1), (0x5A8, 0x5A9), (0x5AB, 0x5AC), (0x5AF, 0x5AF), (0x5C4, 0x5C4), (0x610, 0x617), (0x657, 0x65B),
        (0x65D, 0x65E), (0x6D6, 0x6DC), (0x6DF, 0x6E2), (0x6E4, 0x6E4), (0x6E7, 0x6E8), (0x6EB, 0x6EC), (0x730, 0x730),
        (0x732, 0x733), (0x735, 0x736), (0x73A, 0x73A), (0x73D, 0x73D), (0x73F, 0x741), (0x743, 0x743), (0x745, 0x745),
        (0x747, 0x747), (0x749, 0x74A), (0x7EB, 0x7F1), (0x7F3, 0x7F3), (0x816, 0x819), (0x81B, 0x823), (0x825, 0x827),
        (0x829, 0x82D), (0x951, 0x951), (0x953, 0x954), (0xF82, 0xF83), (0xF86, 0xF87), (0x135D, 0x135F),
        (0x17DD, 0x17DD), (0x193A, 0x193A), (0x1A17, 0x1A17), (0x1A75, 0x1A7C), (0x1B6B, 0x1B6B), (0x1B6D, 0x1B73),
        (0x1CD0, 0x1CD2), (0x1CDA, 0x1CDB), (0x1CE0, 0x1CE0), (0x1DC0, 0x1DC1), (0x1DC3, 0x1DC9), (0x1DCB, 0x1DCC),
        (0x1DD1, 0x1DE6), (0x1DFE, 0x1DFE), (0x20D0, 0x20D1), (0x20D4, 0x20D7), (0x20DB, 0x20DC), (0x20E1, 0x20E1),
        (0x20E7, 0x20E7), (0x20E9, 0x20E9), (0x20F0, 0x20F0), (0x2CEF, 0x2CF1), (0x2DE0, 0x2DFF), (0xA66F, 0xA66F),
        (0xA67C, 0xA67D), (0xA6F0, 0xA6F1), (0xA8E0, 0xA8F1), (0xAAB0, 0xAAB0), (0xAAB2, 0xAAB3), (0xAAB7, 0xAAB8),
        (0xAABE, 0xAABF), (0xAAC1, 0xAAC1), (0xFE20, 0xFE26), (0x10A0F, 0x10A0F), (0x10A38, 0x10A38),
        (0x1D185, 0x1D189), (0x1D1AA, 0x1D1AD), (0x1D242, 0x1D244),
    )
    for mark in range(first, last + 1)
)  # fmt: skip
"""The combining marks; the index of a mark is the row or column that it stands for."""
MAX_SIZE = len(POSITION_MARKS)
"""Rows and columns of the largest picture."""
# Kitty refuses longer ones.
_CHUNK_LENGTH = 4096
"""Characters of data in one command."""


def make_placeholders(number: int, line: int, columns: int, style: Style) -> Segment:
    """Return the placeholders for one row of a picture, on the background of a style."""
    text = "".join(
        f"{PLACEHOLDER}{POSITION_MARKS[line]}{mark}" for mark in POSITION_MARKS[:columns]
    )
    # The colour is the picture's number, byte by byte.
    return Segment(
        text, style + Style(color=Color.from_rgb(number >> 16, number >> 8 & 0xFF, number & 0xFF))
    )


def make_upload_commands(options: str, data: bytes) -> tuple[str, ...]:
    """Return the commands that transfer data; `options`: those of the transfer,
    such as `a=T,f=100`.
    """
    text = base64.b64encode(data).decode("ascii")
    chunks = [
        text[start : start + _CHUNK_LENGTH] for start in range(0, len(text), _CHUNK_LENGTH)
    ] or [""]
    commands: list[str] = []
    for index, chunk in enumerate(chunks):
        # Only the first command has the options. `m=1`: more chunks follow;
        # `q=2`: kitty must not answer.
        first_options = f"{options}," if index == 0 else ""
        commands.append(f"\x1b_Gq=2,{first_options}m={int(index < len(chunks) - 1)};{chunk}\x1b\\")
    return tuple(commands)


def make_delete_command(number: int) -> str:
    """Return the command that deletes a picture in kitty, and frees its memory."""
    return f"\x1b_Ga=d,d=I,i={number},q=2;\x1b\\"
