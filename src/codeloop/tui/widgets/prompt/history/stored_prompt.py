"""A prompt as stored in a file."""

from msgspec import Struct

from codeloop.tui.editor.chips import Chips
from codeloop.tui.widgets.prompt.entry import Mode


class StoredPrompt(Struct, frozen=True, omit_defaults=True):
    """The editor's content: text, chips and cursor; `at`: when it was sent or stashed, in ms since the epoch.

    A large chip's content is in a file of its own (`chip_contents.py`).
    """

    text: str
    mode: Mode = "prompt"
    chips: Chips = {}
    at: int = 0
    cursor: int | None = None
