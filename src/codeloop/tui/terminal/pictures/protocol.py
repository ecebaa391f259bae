"""Finds the protocol by which the terminal draws pictures: by its answers to queries,
or by environment variables.

Pictures within the conversation need the queries (`inline_pictures.py`). A picture on the whole
screen (`picture_view.py`) is drawn by a protocol guessed from the environment,
without waiting for answers.
"""

import re
from collections.abc import Mapping
from typing import Literal

from codeloop.tui.terminal.multiplexer import query_tmux

PictureProtocol = Literal["kitty", "iterm", "sixel", ""]
"""The protocols for pictures: Kitty's graphics, iTerm's inline images, DEC's sixels; "": none."""

VERSION, COLOURS, CELL, ATTRIBUTES = "version", "colours", "cell", "attributes"
"""The names of the queries, as in `TerminalInput.query`."""
CELL_QUERY = "\x1b[16t"
# The order matters: every terminal answers the query of its attributes,
# so that its answer ends the others'.
QUERIES = f"\x1b[>q\x1b[?1;1;0S{CELL_QUERY}\x1b[c"
"""The queries of the version, of the colours of a sixel, of the size of a cell,
and of the attributes.
"""
_SIXEL_ATTRIBUTE = "4"
"""The number in a terminal's attributes that stands for sixels."""
_KITTY_VERSION = r"kitty\((\d+)\.(\d+)|ghostty"
# Kitty has Unicode placeholders, which pictures within the conversation need, since this version.
_MIN_KITTY_VERSION = (0, 28)
_ITERM_VERSION = r"iterm2|wezterm|mintty"
# These terminals do not erase a picture over which text is written: it would stay
# when the conversation scrolls.
_NO_ERASE_VERSION = r"konsole"
_TMUX_FORMAT = "#{client_termtype}\n#{client_termfeatures}\n#{allow-passthrough}"

_ITERM_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "vscode", "mintty", "Tabby", "Hyper", "rio"})
"""Values of `TERM_PROGRAM` of terminals with iTerm's protocol."""
_SIXEL_TERMS = ("foot", "mlterm", "yaft", "contour", "xterm-sixel")
"""Prefixes of `TERM` of terminals that draw sixels."""


def find_protocol(answers: Mapping[str, str]) -> PictureProtocol:
    """Return the protocol for pictures within the conversation by the terminal's answers,
    each under its query.
    """
    version = answers.get(VERSION, "").lower()
    if match := re.match(_KITTY_VERSION, version):
        is_ghostty = match[1] is None
        return "kitty" if is_ghostty or (int(match[1]), int(match[2])) >= _MIN_KITTY_VERSION else ""
    if re.match(_ITERM_VERSION, version):
        return "iterm"
    if re.match(_NO_ERASE_VERSION, version):
        return ""
    # The first number is the terminal's class, the others are its features.
    return "sixel" if _SIXEL_ATTRIBUTE in answers.get(ATTRIBUTES, "").split(";")[1:] else ""


async def query_outer_terminal() -> dict[str, str]:
    """Return the answers of the terminal that tmux runs in;
    {}: tmux does not pass pictures on to it.
    """
    version, features, passthrough, *_ = [*(await query_tmux(_TMUX_FORMAT)).split("\n"), "", "", ""]
    # Kitty's placeholders are text, which tmux keeps in its windows;
    # the pictures of other protocols would be lost.
    can_pass = passthrough in {"on", "all", "1"} and "RGB" in features.split(",")
    return {VERSION: version} if can_pass and re.match(_KITTY_VERSION, version.lower()) else {}


def guess_protocol(environment: Mapping[str, str]) -> PictureProtocol:
    """Return the protocol for a picture on the whole screen by environment variables.

    Within tmux and screen, the result is "": pictures on the whole screen are not wrapped for them.
    """
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if (
        environment.get("TMUX")
        or environment.get("STY")
        or term.startswith(("tmux", "screen", "dumb"))
    ):
        return ""
    if (
        environment.get("KITTY_WINDOW_ID")
        or "kitty" in term
        or "ghostty" in (term, program)
        or term == "xterm-ghostty"
    ):
        return "kitty"
    if program in _ITERM_PROGRAMS or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    if term.startswith(_SIXEL_TERMS):
        return "sixel"
    # Konsole draws Kitty's pictures since 22.04; its variable holds the version as six digits.
    return "kitty" if environment.get("KONSOLE_VERSION", "") >= "220400" else ""
