"""Draws the output of programs: keeps its ANSI colours, and drops all other control sequences."""

import re

from msgspec import Struct
from msgspec.structs import replace
from rich.segment import Segment
from rich.style import Style

from codeloop.kit.text.patterns import compile_once
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.tui.render.cells import expand_tabs
from codeloop.tui.themes.palette_256 import name_colour
from codeloop.tui.themes.styles import Styles

# A control sequence; the group holds the codes of one that sets colours and attributes. The other
# alternatives are CSI sequences, strings such as window titles,
# and escapes of two or three characters.
_SEQUENCE = (
    r"\x1b\[([0-9;:]*)m"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]|\x1b\Z"
)
# How `man` prints bold and underlined letters: each is overwritten by itself or an underscore.
_OVERSTRIKE = r"[^\x08\n]\x08"
_COLOUR_NAMES = (
    "text_muted",
    "error",
    "success",
    "warning",
    "primary",
    "secondary",
    "info",
    "text",
)
"""The theme's colours, readable on its background, for ANSI black, red, green, yellow, blue,
magenta, cyan, white.
"""
_ATTRIBUTE_BY_CODE = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
"""The attribute that each code begins."""
_ATTRIBUTES_BY_END_CODE = {
    22: {"bold", "dim"},
    23: {"italic"},
    24: {"underline"},
    27: {"reverse"},
    29: {"strike"},
}
"""The attributes that each code ends."""


class Pen(Struct, frozen=True):
    """The style of the output after a control sequence.

    Colours are names of the theme, `#rrggbb`, or `ansi_` names; empty: those of plain text.
    """

    colour: str = ""
    background: str = ""
    attributes: frozenset[str] = frozenset()


class AnsiText:
    """Renders an output line by line; colours continue on the next line.
    `base_colour`: that of plain text.
    """

    def __init__(self, styles: Styles, base_colour: str) -> None:
        self._styles = styles
        self._base_colour = base_colour
        self._pen = Pen()
        self._cache: dict[Pen, Style] = {}

    def draw_line(self, text: str) -> list[Segment]:
        """Return a line in segments, which is not yet cut or wrapped."""
        # Most lines are without any control sequence.
        if text.isascii() and text.isprintable():
            return [Segment(text, self._find_style())] if text else []
        segments: list[Segment] = []
        text_start = 0
        line = _apply_overwrites(text)
        for match in compile_once(_SEQUENCE).finditer(line):
            self._append_text(segments, line[text_start : match.start()])
            text_start = match.end()
            if match[1] is not None:
                self._pen = _apply_codes(self._pen, match[1])
        self._append_text(segments, line[text_start:])
        return segments

    def _append_text(self, segments: list[Segment], text: str) -> None:
        if text:
            segments.append(Segment(escape_controls(expand_tabs(text)), self._find_style()))

    def _find_style(self) -> Style:
        style = self._cache.get(self._pen)
        if style is None:
            style = self._cache[self._pen] = self._make_style(self._pen)
        return style

    def _make_style(self, pen: Pen) -> Style:
        attributes = " ".join(sorted(pen.attributes))
        named_background = "" if pen.background.startswith(("#", "ansi_")) else pen.background
        colour = pen.colour or self._base_colour
        # Plain text on a coloured background has the theme's background colour: its own
        # might be unreadable there.
        if not pen.colour and named_background and self._styles.theme.background:
            colour = "background"
        if colour.startswith(("#", "ansi_")):
            style = self._styles.of("", attributes, named_background) + Style(
                color=colour.removeprefix("ansi_")
            )
        else:
            style = self._styles.of(colour, attributes, named_background)
        if named_background == pen.background:
            return style
        return style + Style(bgcolor=pen.background.removeprefix("ansi_"))


def _apply_overwrites(line: str) -> str:
    """Return a line as a terminal would show it after its carriage returns (progress
    bars) and backspaces (manuals).
    """
    line = line.rstrip("\r").rpartition("\r")[2]
    while "\x08" in line:
        shorter = compile_once(_OVERSTRIKE).sub("", line)
        if shorter == line:
            return line.replace("\x08", "")
        line = shorter
    return line


def _apply_codes(pen: Pen, codes: str) -> Pen:
    """Return the style after a sequence with these codes,
    which are separated by semicolons or colons; "" is 0.
    """
    numbers = (
        [int(code) if code.isdigit() else 0 for code in re.split("[;:]", codes)] if codes else [0]
    )
    index = 0
    while index < len(numbers):
        code = numbers[index]
        index += 1
        match code:
            case 0:
                pen = Pen()
            case _ if code in _ATTRIBUTE_BY_CODE:
                pen = replace(pen, attributes=pen.attributes | {_ATTRIBUTE_BY_CODE[code]})
            case _ if code in _ATTRIBUTES_BY_END_CODE:
                pen = replace(pen, attributes=pen.attributes - _ATTRIBUTES_BY_END_CODE[code])
            case _ if 30 <= code <= 37 or 90 <= code <= 97:
                pen = replace(pen, colour=_COLOUR_NAMES[code % 10])
            case _ if 40 <= code <= 47 or 100 <= code <= 107:
                pen = replace(pen, background=_COLOUR_NAMES[code % 10])
            case 39:
                pen = replace(pen, colour="")
            case 49:
                pen = replace(pen, background="")
            case 38 | 48:
                colour, index = _read_colour(numbers, index)
                pen = replace(pen, colour=colour) if code == 38 else replace(pen, background=colour)
            case _:
                pass
    return pen


def _read_colour(numbers: list[int], index: int) -> tuple[str, int]:
    """Return the colour that the codes after 38 or 48 select, and the index of the next code.

    The codes are `5;N` (one of 256 colours) or `2;R;G;B`; the first of them is at `index`.
    """
    match numbers[index : index + 4]:
        case [5, number, *_]:
            return _COLOUR_NAMES[number % 8] if number < 16 else name_colour(
                min(number, 255)
            ), index + 2
        case [2, *channels] if len(channels) == 3:
            return "#" + "".join(f"{min(channel, 255):02x}" for channel in channels), index + 4
        case _:
            return "", len(numbers)
