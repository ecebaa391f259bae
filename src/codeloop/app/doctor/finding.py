"""The result of a check of `codeloop doctor`."""

from typing import Literal

from msgspec import Struct

FindingState = Literal["ok", "warning", "problem"]


class Finding(Struct, frozen=True):
    """A line of the report. `group` and `name`: the checked subject;
    `fix`: the advice to the user, or "".
    """

    group: str
    name: str
    state: FindingState
    text: str
    fix: str = ""
