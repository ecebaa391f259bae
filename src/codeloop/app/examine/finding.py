"""One line of `codeloop doctor`."""

from typing import Literal

from msgspec import Struct

State = Literal["ok", "warning", "problem"]


class Finding(Struct, frozen=True):
    """What was found about a subject; `fix`: how to change it, "" where nothing has to be."""

    group: str
    name: str
    state: State
    text: str
    fix: str = ""
