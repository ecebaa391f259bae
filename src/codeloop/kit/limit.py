"""One deadline, size or count that bounds the program."""

from typing import Literal

import msgspec

Unit = Literal["ms", "bytes", "lines", "characters", "tokens", "count", "percent"]


class Limit(msgspec.Struct, frozen=True):
    """One bound or interval. `name` is `subject.what`; `value` is in `unit`.

    `why` says what happens when a bound is reached, and for an interval (as `FLEET_POLL`)
    what is done so often.
    """

    name: str
    value: int
    unit: Unit
    why: str

    @property
    def seconds(self) -> float:
        """The value of a deadline, in seconds."""
        return self.value / 1000
