"""A prompt as it is kept in a file."""

from msgspec import Struct

from codeloop.tui.editor.chips import Chips
from codeloop.tui.widgets.prompt.entry import Mode


class StoredPrompt(Struct, frozen=True, omit_defaults=True):
    """A prompt as it stood in the editor; `at`: ms since the epoch. A large chip's content is in a file of its own."""

    text: str
    mode: Mode = "prompt"
    chips: Chips = {}
    at: int = 0
    cursor: int | None = None
