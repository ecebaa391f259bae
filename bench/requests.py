"""What the model server saw: how large requests are, when they came, and whether each continues the one before."""

import itertools
import json
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_BETWEEN = re.compile(r"[\s,]*")

# A step's figure is the median of the steps around it: one step alone is noise.
EARLY_STEPS = range(5, 16)
LATE_STEPS = range(990, 1001)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came."""

    at: float
    """Seconds on the server's monotonic clock, when the request was complete."""
    chosen: float
    """When the server had its answer ready: what it takes to find one grows with the request and is not the agent's."""
    body: bytes


def overhead(request: Request) -> int:
    """Return the bytes of compact JSON that the system prompt and the tools take in a chat completions request."""
    body = json.loads(request.body)
    system = [message for message in body["messages"] if message["role"] in {"system", "developer"}]
    return sum(_size(part) for part in (*system, body.get("tools", [])))


def continued(requests: Sequence[Request]) -> float | None:
    """Return the share of requests that begin with the bytes of the one before, up to its last message, if any."""
    pairs = list(itertools.pairwise(requests))
    if not pairs:
        return None
    return sum(_continues(earlier.body, later.body) for earlier, later in pairs) / len(pairs)


def late_to_early(requests: Sequence[Request]) -> float | None:
    """Return how many times longer step 1,000 took than step 10. None when the session was shorter than that."""
    if len(requests) <= LATE_STEPS.stop:
        return None
    return _step(requests, LATE_STEPS) / _step(requests, EARLY_STEPS)


def _step(requests: Sequence[Request], steps: range) -> float:
    return statistics.median(requests[step].at - requests[step - 1].chosen for step in steps)


def _continues(earlier: bytes, later: bytes) -> bool:
    *_, last = _message_offsets(earlier)
    return later[:last] == earlier[:last]


def _message_offsets(body: bytes) -> Iterator[int]:
    """Yield where each element of `messages` starts, in bytes."""
    text = body.decode("ascii", errors="replace")  # one character a byte, so that offsets are those of the body
    decoder = json.JSONDecoder(strict=False)
    position = text.index("[", text.index('"messages":')) + 1
    while True:
        between = _BETWEEN.match(text, position)
        position = between.end() if between else position
        if text[position] == "]":
            return
        yield position
        _, position = decoder.raw_decode(text, position)


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
