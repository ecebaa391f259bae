"""Keys as terminals write them that the library does not read: an Enter that is held with another key, above all."""

from enum import StrEnum

from textual import _ansi_sequences


class _HeldEnter(StrEnum):
    ALT = "alt+enter"
    CTRL = "ctrl+enter"
    SHIFT = "shift+enter"


_SEQUENCES = {
    "\x1b\r": _HeldEnter.ALT,
    "\x1b\n": _HeldEnter.ALT,
    "\x1b[27;2;13~": _HeldEnter.SHIFT,
    "\x1b[27;3;13~": _HeldEnter.ALT,
    "\x1b[27;5;13~": _HeldEnter.CTRL,
    "\x1bOM": _HeldEnter.SHIFT,
}


def learn_keys() -> None:
    """Have the library read these keys, too: without that they would send what is being written."""
    known: dict[str, object] = vars(_ansi_sequences)["ANSI_SEQUENCES_KEYS"]
    known.update({sequence: (key,) for sequence, key in _SEQUENCES.items()})
