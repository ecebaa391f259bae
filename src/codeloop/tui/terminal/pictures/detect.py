"""How a terminal draws pictures within a conversation: it is asked once, when the first one is in sight."""

import fcntl
import re
import struct
import termios
from collections.abc import Mapping

from codeloop.tui.terminal.images import Protocol
from codeloop.tui.terminal.multiplexer import ask_tmux

VERSION, COLOURS, CELL, LAST = "version", "colours", "cell", "attributes"
"""The questions, as `Arrival` names them."""
ASK_CELL = "\x1b[16t"
ASK = f"\x1b[>q\x1b[?1;1;0S{ASK_CELL}\x1b[c"
"""All of them. Every terminal answers the last one, and those before it first."""
_KITTY = re.compile(r"kitty\((\d+)\.(\d+)|ghostty")
_ITERM = re.compile(r"iterm2|wezterm|mintty")
_TEXT_STAYS_BELOW = re.compile(r"konsole")
"""Terminals in which a picture outlives the text that is written over it."""
_TMUX = "#{client_termtype}\n#{client_termfeatures}\n#{allow-passthrough}"


def protocol_of_answers(answers: Mapping[str, str]) -> Protocol:
    """Return how pictures are drawn within text by a terminal that has answered so; "": it can't."""
    version = answers.get(VERSION, "").lower()
    if found := _KITTY.match(version):
        return "kitty" if found[1] is None or (int(found[1]), int(found[2])) >= (0, 28) else ""
    if _ITERM.match(version):
        return "iterm"
    if _TEXT_STAYS_BELOW.match(version):
        return ""
    return "sixel" if "4" in answers.get(LAST, "").split(";")[1:] else ""


async def terminal_of_tmux() -> dict[str, str]:
    """Ask tmux about the terminal around it, in the form of that terminal's answers; {} if it passes no pictures on."""
    version, features, hands_on, *_ = [*(await ask_tmux(_TMUX)).split("\n"), "", "", ""]
    can = hands_on in {"on", "all", "1"} and "RGB" in features.split(",")
    return {VERSION: version} if can and _KITTY.match(version.lower()) else {}


def cell_of(answers: Mapping[str, str], descriptor: int) -> tuple[int, int] | None:
    """Return the pixels of a cell, its width first, as the terminal or its driver says; None: neither does."""
    height, _, width = answers.get(CELL, "").partition(";")
    if height.isdigit() and width.isdigit() and int(height) and int(width):
        return int(width), int(height)
    try:
        rows, columns, wide, high = struct.unpack("HHHH", fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(8)))
    except OSError:
        return None
    cell = (wide // max(columns, 1), high // max(rows, 1))
    return cell if all(cell) else None
