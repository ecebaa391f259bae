"""How long to wait before the next request, by an answer's rate-limit headers. Pure."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
LEFT = (
    *((f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}") for kind in _KINDS[:2]),
    *((f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset") for kind in _KINDS),
)
"""Pairs of headers: the remaining amount, and its reset time."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smh])")


def pause_of(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds until the exhausted limit resets; 0 otherwise.

    `now`: seconds since the epoch.
    """
    return max(
        (_seconds(headers.get(reset, ""), now) for remaining, reset in LEFT if headers.get(remaining) == "0"),
        default=0.0,
    )


def _seconds(text: str, now: float) -> float:
    """Read a time: `6m0s`, `20ms`, seconds, or a date. 0 for anything else."""
    if durations := _DURATION.findall(text):
        return sum(float(number) * _UNITS[unit] for number, unit in durations)
    with suppress(ValueError):
        return max(float(text), 0.0)
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        return max((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now, 0.0)
    return 0.0
