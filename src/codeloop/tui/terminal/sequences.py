"""Keys as terminals write them that the library does not read: an Enter or a letter that is held with others."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct
from textual import events

from codeloop.tui.terminal.textual_private import XTermParser, add_sequences

HELD_KEYS = "\x1b[?1036;1039s\x1b[?1036;1039h\x1b[>4;1m\x1b[0m"
"""Has xterm and its like write Enter with Shift otherwise than Enter, and a letter with Alt behind an escape.

What was set before is kept for PLAIN_KEYS. A terminal that knows none of it may take the last but one for an underline.
"""
PLAIN_KEYS = "\x1b[?1036;1039r\x1b[>4m\x1b[0m"
"""Takes HELD_KEYS back."""
LETTERS_AS_THEY_ARE = "\x1b[=1u"
"""Has a terminal that speaks kitty's protocol write what a key types as the text itself.

Where the library has it report every key, some forget the text of a dead key or of an input method.
"""
UNDERLINE, ANY_CURSOR = "\x1b[4 q", "\x1b[0 q"
"""The terminal's cursor as a line, which covers nothing of the one that the app draws; and as the user has it."""
SHOWN, HIDDEN = "\x1b[?25h", "\x1b[?25l"
"""The terminal's cursor."""
_AS_BYTES = {"\x1b[91;5u": "\x1b[27u", "\x1b[105;5u": "\x1b[9u", "\x1b[109;5u": "\x1b[13u"}
"""Ctrl with [, i and m, which are Escape, Tab and Enter on every other terminal, and for who is used to that."""
_HELD = re.compile(r"\x1b\[27;(\d+);(\d+)~")
_SHIFT = 1


class HeldKey(Struct, frozen=True):
    """A key as the library reads it: from `value`."""

    value: str


_LETTERS = "abcdefgklnopqrstuvwxyz"
"""Those that Control makes a byte of their own: without i, j and m, which are Tab and Enter, and h, a backspace."""

_SEQUENCES = {
    **{f"\x1b{chr(ord(letter) & 0x1F)}": f"alt+ctrl+{letter}" for letter in _LETTERS},
    "\x1b\r": "alt+enter",
    "\x1b\n": "alt+enter",
    "\x1bOM": "shift+enter",
    "\x1bb": "alt+b",
    "\x1bf": "alt+f",
}


def learn_keys() -> None:
    """Have the library read these keys, too: without that they would send what is being written, or leave."""
    add_sequences({sequence: (HeldKey(key),) for sequence, key in _SEQUENCES.items()})


class KeyParser(XTermParser):
    """Also reads keys as xterm writes those that are held with others."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        return super()._sequence_to_key_events(as_kitty_writes(sequence), alt)


def as_kitty_writes(sequence: str) -> str:
    """Return a key that xterm has written as kitty writes it; anything else as it is."""
    found = _HELD.fullmatch(sequence)
    if found is None:
        return _AS_BYTES.get(sequence, sequence)
    held, code = int(found[1]), int(found[2])
    if (held - 1) & _SHIFT and code < 0x110000:
        code = ord(chr(code).lower()[:1])
    return f"\x1b[{code};{held}u"


def needs_cursor(environment: Mapping[str, str]) -> bool:
    """Return whether a terminal shows what an input method composes only where it shows its cursor: GNOME's and others.

    Elsewhere it stays hidden: not all know how to draw it as a line.
    """
    return bool(environment.get("VTE_VERSION")) and not environment.get("STY")
