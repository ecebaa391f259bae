"""Detects how a terminal draws pictures: it is queried once, when the first picture is visible."""

import fcntl
import re
import struct
import termios
from collections.abc import Mapping

from codeloop.tui.terminal.images import Protocol
from codeloop.tui.terminal.multiplexer import ask_tmux

VERSION, COLOURS, CELL, LAST = "version", "colours", "cell", "attributes"
"""The queries, as named by `Arrival`."""
ASK_CELL = "\x1b[16t"
ASK = f"\x1b[>q\x1b[?1;1;0S{ASK_CELL}\x1b[c"
"""All queries. Every terminal answers the last one, after the others."""
_KITTY = re.compile(r"kitty\((\d+)\.(\d+)|ghostty")
_ITERM = re.compile(r"iterm2|wezterm|mintty")
_TEXT_STAYS_BELOW = re.compile(r"konsole")
"""Terminals in which pictures stay when text is written over them."""
_TMUX = "#{client_termtype}\n#{client_termfeatures}\n#{allow-passthrough}"


def protocol_of_answers(answers: Mapping[str, str]) -> Protocol:
    """Return the drawing protocol of a terminal by its answers; "": none."""
    version = answers.get(VERSION, "").lower()
    if match := _KITTY.match(version):
        return "kitty" if match[1] is None or (int(match[1]), int(match[2])) >= (0, 28) else ""
    if _ITERM.match(version):
        return "iterm"
    if _TEXT_STAYS_BELOW.match(version):
        return ""
    return "sixel" if "4" in answers.get(LAST, "").split(";")[1:] else ""


async def terminal_of_tmux() -> dict[str, str]:
    """Return the outer terminal's answers, as known by tmux; {} if tmux passes no pictures on."""
    version, features, hands_on, *_ = [*(await ask_tmux(_TMUX)).split("\n"), "", "", ""]
    can = hands_on in {"on", "all", "1"} and "RGB" in features.split(",")
    return {VERSION: version} if can and _KITTY.match(version.lower()) else {}


def cell_of(answers: Mapping[str, str], descriptor: int) -> tuple[int, int] | None:
    """Return a cell's width and height in pixels, from the terminal or its driver; None: unknown."""
    height, _, width = answers.get(CELL, "").partition(";")
    if height.isdigit() and width.isdigit() and int(height) and int(width):
        return int(width), int(height)
    try:
        rows, columns, wide, high = struct.unpack("HHHH", fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8)))
    except OSError:
        return None
    cell = (wide // max(columns, 1), high // max(rows, 1))
    return cell if all(cell) else None
