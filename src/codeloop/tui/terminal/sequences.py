"""Keys as terminals write them that the library does not read: an Enter or a letter that is held with others."""

from msgspec import Struct
from textual import _ansi_sequences


class HeldKey(Struct, frozen=True):
    """A key as the library reads it: from `value`."""

    value: str


_LETTERS = "abcdefgklnopqrstuvwxyz"
"""Those that Control makes a byte of their own: without i, j and m, which are Tab and Enter, and h, a backspace."""

_SEQUENCES = {
    **{f"\x1b{chr(ord(letter) & 0x1F)}": f"alt+ctrl+{letter}" for letter in _LETTERS},
    "\x1b\r": "alt+enter",
    "\x1b\n": "alt+enter",
    "\x1b[27;2;13~": "shift+enter",
    "\x1b[27;3;13~": "alt+enter",
    "\x1b[27;5;13~": "ctrl+enter",
    "\x1bOM": "shift+enter",
}


def learn_keys() -> None:
    """Have the library read these keys, too: without that they would send what is being written, or leave."""
    known: dict[str, object] = vars(_ansi_sequences)["ANSI_SEQUENCES_KEYS"]
    known.update({sequence: (HeldKey(key),) for sequence, key in _SEQUENCES.items()})
