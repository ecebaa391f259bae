"""Sequences of keys that Textual does not parse, such as Enter with modifiers, and those that set up the terminal."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct
from textual import events

from codeloop.tui.terminal.textual_private import XTermParser, add_sequences

MODIFIED_KEYS = "\x1b[?1036;1039s\x1b[?1036;1039h\x1b[>4;1m\x1b[0m"
"""Makes xterm and similar terminals tell Shift+Enter from Enter, and send Alt+letter as an escape and the letter.

The previous setting is saved for PLAIN_KEYS. The last sequence resets the style, since a terminal that does not know
the one before it may take that for an underline.
"""
PLAIN_KEYS = "\x1b[?1036;1039r\x1b[>4m\x1b[0m"
"""Undoes MODIFIED_KEYS."""
PLAIN_LETTERS = "\x1b[=1u"
"""Makes terminals with kitty's protocol send typed characters as plain text.

With Textual's setting, which reports every key, some lose the text of dead keys and input methods.
"""
UNDERLINE_CURSOR, DEFAULT_CURSOR = "\x1b[4 q", "\x1b[0 q"
"""Make the terminal's cursor a line, which does not cover the app's own cursor, and give it the user's shape again."""
SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"
"""Show and hide the terminal's cursor."""
_AS_BYTES = {"\x1b[91;5u": "\x1b[27u", "\x1b[105;5u": "\x1b[9u", "\x1b[109;5u": "\x1b[13u"}
"""The sequences of Ctrl+[, Ctrl+i and Ctrl+m, each with that of Escape, Tab or Enter, as other terminals send them."""
_XTERM_KEY = re.compile(r"\x1b\[27;(\d+);(\d+)~")
_SHIFT = 1


class ModifiedKey(Struct, frozen=True):
    """A key with modifiers, in the form that Textual's table of sequences needs: its name is `value`."""

    value: str


_LETTERS = "abcdefgklnopqrstuvwxyz"
"""Letters whose control byte is no other key: all but h (backspace), i (Tab), j and m (Enter)."""

_SEQUENCES = {
    **{f"\x1b{chr(ord(letter) & 0x1F)}": f"alt+ctrl+{letter}" for letter in _LETTERS},
    "\x1b\r": "alt+enter",
    "\x1b\n": "alt+enter",
    "\x1bOM": "shift+enter",
    "\x1bb": "alt+b",
    "\x1bf": "alt+f",
}


def register_keys() -> None:
    """Register these keys with Textual, which would take them for others, such as Alt+Enter for Escape and Enter."""
    add_sequences({sequence: (ModifiedKey(key),) for sequence, key in _SEQUENCES.items()})


class KeyParser(XTermParser):
    """Textual's parser, which also parses xterm's sequences of keys with modifiers."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        return super()._sequence_to_key_events(to_kitty_sequence(sequence), alt)


def to_kitty_sequence(sequence: str) -> str:
    """Return xterm's sequence of a key as kitty's, which Textual parses; another sequence is returned unchanged."""
    match = _XTERM_KEY.fullmatch(sequence)
    if match is None:
        return _AS_BYTES.get(sequence, sequence)
    modifiers, code = int(match[1]), int(match[2])
    if (modifiers - 1) & _SHIFT and code < 0x110000:
        code = ord(chr(code).lower()[:1])
    return f"\x1b[{code};{modifiers}u"


def needs_cursor(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal shows the text of an input method only at a visible cursor, as GNOME's does.

    In other terminals the cursor stays hidden, since not all can draw it as a line.
    """
    return bool(environment.get("VTE_VERSION")) and not environment.get("STY")
