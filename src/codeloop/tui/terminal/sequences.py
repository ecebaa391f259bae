"""Control sequences that set up the terminal, and the environment variables that say
where they must not be sent.
"""

from collections.abc import Mapping

PLAIN_TERMINALS = {"linux", "dumb"}
"""Values of `TERM` of terminals that would print unknown sequences as text."""

# The previous setting is saved for PLAIN_KEYS. The last sequence resets the style, since a terminal
# that does not know the one before it may take that for an underline.
MODIFIED_KEYS = "\x1b[?1036;1039s\x1b[?1036;1039h\x1b[>4;1m\x1b[0m"
"""Makes xterm and similar terminals tell Shift+Enter from Enter,
and send Alt+letter as an escape and the letter.
"""
PLAIN_KEYS = "\x1b[?1036;1039r\x1b[>4m\x1b[0m"
"""Undoes MODIFIED_KEYS."""
# With Textual's setting, which reports every key, some terminals lose the text of
# dead keys and input methods.
PLAIN_LETTERS = "\x1b[=1u"
"""Makes terminals with kitty's protocol send typed characters as plain text."""
# A line does not cover the app's own cursor. 0 is the shape that the user has configured.
UNDERLINE_CURSOR, DEFAULT_CURSOR = "\x1b[4 q", "\x1b[0 q"
"""Make the terminal's cursor a line, and give it the user's shape again."""
SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""Save the window's title, and restore it."""
SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"
"""Show and hide the terminal's cursor."""


def needs_visible_cursor(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal shows the text of an input method only at a visible cursor,
    as GNOME's does.

    In other terminals the cursor stays hidden, since not all can draw it as a line.
    """
    return bool(environment.get("VTE_VERSION")) and not environment.get("STY")
