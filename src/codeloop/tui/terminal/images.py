"""Reads picture attachments without decoding them: their bytes, size and description.

Also tells by the environment which protocol a terminal has for drawing pictures.
"""

import base64
import binascii
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from codeloop.kit.small_files import read_start
from codeloop.kit.terminal_text import one_line
from codeloop.schema.part import FilePart

Protocol = Literal["kitty", "iterm", "sixel", ""]
MAX_BYTES = 20_000_000
"""Bytes of a picture that are read."""
_CELL = (10, 20)
"""Width and height of a cell in pixels, if the terminal does not tell."""
_MAX_NAME = 60
"""Characters of a file's name in a description."""
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_ITERM = frozenset({"iTerm.app", "WezTerm", "vscode", "mintty", "Tabby", "Hyper", "rio"})
_SIXEL = ("foot", "mlterm", "yaft", "contour", "xterm-sixel")
_HEAD_LENGTH = 65_536
"""Characters of base64 at the start of a picture that contain its size."""


class PictureBox(Struct, frozen=True):
    """A space for a picture, in columns and rows; `cell`: width and height of a cell in pixels."""

    columns: int
    rows: int
    cell: tuple[int, int] = _CELL

    def fit(self, width: int, height: int) -> "PictureBox":
        """Return the box within this one for a picture of a size in pixels: with its shape, and not enlarged."""
        wide, high = self.columns * self.cell[0], self.rows * self.cell[1]
        share = min(wide / max(width, 1), high / max(height, 1), 1.0)
        columns = max(round(width * share / self.cell[0]), 1)
        rows = max(round(height * share / self.cell[1]), 1)
        return PictureBox(min(columns, self.columns), min(rows, self.rows), self.cell)


def data_of(part: FilePart) -> bytes:
    """Return the bytes of an attachment; empty: they are not available on this machine."""
    try:
        if part.url.startswith("data:"):
            return _decode(part.url.partition(",")[2])[:MAX_BYTES]
        url = urlsplit(part.url)
        if url.scheme == "file" and url.netloc in {"", "localhost"}:
            return read_start(Path(unquote(url.path)), MAX_BYTES)
    except (OSError, ValueError):
        pass
    return b""


def describe_attachment(part: FilePart) -> str:
    """Return a text that describes an attachment, such as `[image shot.png 640x480, 34 kB]`."""
    kind = "image" if part.mime.startswith("image/") else "PDF" if part.mime == "application/pdf" else "file"
    name = part.filename or ("" if part.url.startswith("data:") else unquote(urlsplit(part.url).path))
    facts: list[str] = []
    if data := _base64_of(part):
        width, height = pixels_of(part)
        facts = [*([f"{width}x{height}"] if width else []), format_size(len(data.rstrip("=")) * 3 // 4)]
    words = [word for word in (kind, one_line(name, _MAX_NAME) if name else "", ", ".join(facts)) if word]
    return f"[{' '.join(words)}]"


def pixels_of(part: FilePart) -> tuple[int, int]:
    """Return a picture's width and height in pixels from its attachment; 0: unknown."""
    data = _base64_of(part)
    return read_size(_decode(data[:_HEAD_LENGTH])) if data else (0, 0)


def _base64_of(part: FilePart) -> str:
    return part.url.partition(",")[2] if part.url.startswith("data:") else ""


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except (ValueError, binascii.Error):
        return b""


def format_size(size: int) -> str:
    """Format a number of bytes: 950 B, 34 kB, 1.2 MB."""
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:.0f} kB" if size < 999_500 else f"{size / 1_000_000:.1f} MB"


def read_size(head: bytes) -> tuple[int, int]:
    """Return a picture's width and height in pixels from its first bytes; 0: unknown."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return struct.unpack(">II", head[16:24])
        if head.startswith((b"GIF87a", b"GIF89a")):
            return struct.unpack("<HH", head[6:10])
        if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
            return _read_webp_size(head)
        if head.startswith(b"\xff\xd8"):
            return _read_jpeg_size(head)
    except (struct.error, IndexError):
        pass
    return 0, 0


def _read_webp_size(head: bytes) -> tuple[int, int]:
    match head[12:16]:
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF


def _read_jpeg_size(head: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        if head[at + 1] in _JPEG_SIZES:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return 0, 0


def protocol_of(environment: Mapping[str, str], attributes: str = "") -> Protocol:
    """Return the protocol by which a terminal draws pictures, by the environment; "": none.

    `attributes`: its answer to the query `ESC [ c`, if it was queried. Within tmux and screen, which do not pass
    pictures on, the result is "".
    """
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if environment.get("TMUX") or environment.get("STY") or term.startswith(("tmux", "screen", "dumb")):
        return ""
    if environment.get("KITTY_WINDOW_ID") or "kitty" in term or "ghostty" in (term, program) or term == "xterm-ghostty":
        return "kitty"
    if program in _ITERM or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    if term.startswith(_SIXEL) or "4" in _read_attributes(attributes):
        return "sixel"
    return "kitty" if environment.get("KONSOLE_VERSION", "") >= "220400" else ""


def _read_attributes(answer: str) -> list[str]:
    match = re.search(r"\x1b\[\?([\d;]+)c", answer)
    return match[1].split(";")[1:] if match else []
