"""Figures of the requests that the model server has recorded: their size, their times,
their common beginnings.
"""

import itertools
import json
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_SEPARATOR = re.compile(r"[\s,]*")

# The figures of step 10 and step 1,000 are medians of eleven steps around the one, and up to the
# other: one step alone is noise.
EARLY_STEPS = range(5, 16)
LATE_STEPS = range(990, 1001)


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request of an agent to the model server."""

    received_at: float
    """Seconds on the server's monotonic clock, when the request was complete."""
    answered_at: float
    """When the server had its answer ready: its own time grows with the request
    and is not the agent's.
    """
    body: bytes


def measure_overhead(request: RecordedRequest) -> int:
    """Return the size of system prompt and tools in a chat completions request,
    as bytes of compact JSON.
    """
    body = json.loads(request.body)
    system = [message for message in body["messages"] if message["role"] in {"system", "developer"}]
    return sum(_measure_json(part) for part in (*system, body.get("tools", [])))


def compute_prefix_share(requests: Sequence[RecordedRequest]) -> float | None:
    """Return the share of requests that begin with all bytes of the one before
    up to its last message.

    None: there is one request or none. Services cache the prompt up to the first byte that differs.
    """
    pairs = list(itertools.pairwise(requests))
    if not pairs:
        return None
    return sum(_is_continued(earlier.body, later.body) for earlier, later in pairs) / len(pairs)


def compare_late_step(requests: Sequence[RecordedRequest]) -> float | None:
    """Return the ratio of the times of step 1,000 and step 10.
    None: the session was shorter than that.
    """
    if len(requests) <= LATE_STEPS.stop:
        return None
    return _measure_step(requests, LATE_STEPS) / _measure_step(requests, EARLY_STEPS)


def _measure_step(requests: Sequence[RecordedRequest], steps: range) -> float:
    return statistics.median(
        requests[step].received_at - requests[step - 1].answered_at for step in steps
    )


def _is_continued(earlier: bytes, later: bytes) -> bool:
    *_, last = _find_message_offsets(earlier)
    return later[:last] == earlier[:last]


def _find_message_offsets(body: bytes) -> Iterator[int]:
    """Yield the offset of each element of `messages`, in bytes."""
    # One character for each byte, so that offsets in the text are offsets in the body.
    text = body.decode("ascii", errors="replace")
    decoder = json.JSONDecoder(strict=False)
    position = text.index("[", text.index('"messages":')) + 1
    while True:
        between = _SEPARATOR.match(text, position)
        position = between.end() if between else position
        if text[position] == "]":
            return
        yield position
        _, position = decoder.raw_decode(text, position)


def _measure_json(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
