"""Parses keys that Textual takes for others or does not know: Alt with Enter, Ctrl or a letter,
and xterm's format.
"""

from collections.abc import Iterable

from msgspec import Struct
from textual import events

from codeloop.kit.text.patterns import compile_once
from codeloop.tui.terminal.textual_private import XTermParser, add_sequences

# Kitty's protocol tells Ctrl+[, Ctrl+i and Ctrl+m from Escape, Tab and Enter; other terminals send
# the same byte for both. Here they are taken as Escape, Tab and Enter everywhere,
# so that key bindings work the same.
_PLAIN_KEY_SEQUENCES = {
    "\x1b[91;5u": "\x1b[27u",
    "\x1b[105;5u": "\x1b[9u",
    "\x1b[109;5u": "\x1b[13u",
}
"""The sequences of Ctrl+[, Ctrl+i and Ctrl+m, each with that of Escape, Tab or Enter."""
_XTERM_KEY = r"\x1b\[27;(\d+);(\d+)~"
"""A key in xterm's format, which is also that of its `modifyOtherKeys`: modifiers + 1,
and the code point.
"""
_SHIFT_BIT = 1


class ModifiedKey(Struct, frozen=True):
    """A key with modifiers, in the form that Textual's table of sequences
    needs: its name is `value`.
    """

    value: str


# The control bytes of the other letters are keys of their own: h is backspace, i is Tab,
# j and m are Enter.
_CONTROL_LETTERS = "abcdefgklnopqrstuvwxyz"
_KEY_SEQUENCES = {
    **{f"\x1b{chr(ord(letter) & 0x1F)}": f"alt+ctrl+{letter}" for letter in _CONTROL_LETTERS},
    "\x1b\r": "alt+enter",
    "\x1b\n": "alt+enter",
    "\x1bOM": "shift+enter",
    "\x1bb": "alt+b",
    "\x1bf": "alt+f",
}


def register_keys() -> None:
    """Register these keys with Textual, which would take them for others,
    such as Alt+Enter for Escape and Enter.
    """
    add_sequences({sequence: (ModifiedKey(key),) for sequence, key in _KEY_SEQUENCES.items()})


class KeyParser(XTermParser):
    """Textual's parser, for which sequences are first translated by `normalise_sequence`."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        return super()._sequence_to_key_events(normalise_sequence(sequence), alt)


def normalise_sequence(sequence: str) -> str:
    """Return xterm's sequence of a key as kitty's, which Textual parses.

    Kitty's sequences of Ctrl+[, Ctrl+i and Ctrl+m become those of Escape, Tab and Enter;
    others are returned unchanged.
    """
    match = compile_once(_XTERM_KEY).fullmatch(sequence)
    if match is None:
        return _PLAIN_KEY_SEQUENCES.get(sequence, sequence)
    modifiers, code = int(match[1]), int(match[2])
    # With Shift, xterm sends the code of the upper-case letter, kitty that of the key.
    # Larger numbers are invalid.
    if (modifiers - 1) & _SHIFT_BIT and code < 0x110000:
        code = ord(chr(code).lower()[:1])
    return f"\x1b[{code};{modifiers}u"
