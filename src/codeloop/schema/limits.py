"""Every deadline, size and count that bounds the program, in one table: `codeloop debug limits` prints it."""

from typing import Literal

import msgspec

Unit = Literal["ms", "bytes", "lines", "characters", "tokens", "count"]


class Limit(msgspec.Struct, frozen=True):
    """One bound. `name` is `room.what`; `value` is in `unit`; `why` says what happens when it is reached."""

    name: str
    value: int
    unit: Unit
    why: str

    @property
    def seconds(self) -> float:
        """The value of a deadline, in seconds."""
        return self.value / 1000


STORE_BUSY = Limit("store.busy", 10_000, "ms", "waiting for another process's transaction, then an error")
STORE_POLL = Limit("store.poll", 40, "ms", "how often a follower looks for other processes' events")
STORE_QUEUE = Limit(
    "store.queue", 20_000, "count", "live events that wait for one slow follower; deltas beyond are dropped"
)
STORE_EVENTS = Limit("store.events", 20_000, "count", "stored events kept for replay; older ones are pruned")
MODEL_CONNECT = Limit("model.connect", 15_000, "ms", "connecting to the model's service, then a retry")
MODEL_FIRST_BYTE = Limit("model.first_byte", 300_000, "ms", "waiting for the first byte of an answer, then a retry")
MODEL_IDLE = Limit("model.idle", 120_000, "ms", "silence in the middle of an answer, then a retry")
MODEL_ATTEMPTS = Limit("model.attempts", 5, "count", "tries of one request in all, then the turn ends with the error")
MODEL_WAIT = Limit(
    "model.wait", 60_000, "ms", "the longest wait before a retry; a service that asks for more ends the turn"
)
TOOL_OUTPUT_LINES = Limit("tool.output_lines", 2_000, "lines", "longer output is cut, the whole kept in a file")
TOOL_OUTPUT_BYTES = Limit("tool.output_bytes", 50 * 1024, "bytes", "longer output is cut, the whole kept in a file")
REPEATED_CALLS = Limit(
    "agent.repeated_calls", 3, "count", "identical calls in a row, then the permission doom_loop is asked"
)
CHECKPOINT = Limit("agent.checkpoint", 1_000, "ms", "how often text that streams in is stored")
TITLE = Limit("agent.title", 20_000, "ms", "making a title, then the prompt's first line is the title")


def all_limits() -> tuple[Limit, ...]:
    """Give every row of this module, by name."""
    rows = (value for value in globals().values() if isinstance(value, Limit))
    return tuple(sorted(rows, key=lambda limit: limit.name))
