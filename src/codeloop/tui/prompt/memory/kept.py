"""A prompt as it is kept in a file."""

from msgspec import Struct

from codeloop.tui.prompt.entry import Mode
from codeloop.tui.prompt.text.chips import Chips


class KeptPrompt(Struct, frozen=True, omit_defaults=True):
    """A prompt as it stood in the editor; `at`: ms since the epoch. A large chip's content is in a file of its own."""

    text: str
    mode: Mode = "prompt"
    chips: Chips = {}
    at: int = 0
    cursor: int | None = None
