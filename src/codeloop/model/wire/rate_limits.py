"""Reads from the headers of a service's answers when it accepts requests again: rate limits,
`retry-after`.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from math import isnan
from typing import NamedTuple

from codeloop.kit.text.patterns import compile_once


class RateLimitHeaders(NamedTuple):
    """The names of two headers: one with the amount that remains of a limit,
    one with the time of its reset.
    """

    remaining: str
    reset: str


# OpenAI and services like it, then Anthropic.
RATE_LIMIT_HEADERS = (
    *(
        RateLimitHeaders(f"x-ratelimit-remaining-{unit}", f"x-ratelimit-reset-{unit}")
        for unit in ("requests", "tokens")
    ),
    *(
        RateLimitHeaders(
            f"anthropic-ratelimit-{unit}-remaining", f"anthropic-ratelimit-{unit}-reset"
        )
        for unit in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
)
# Of services with one limit: OpenRouter, GitHub, and the draft of a standard.
_RESET_HEADERS = (
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-rate-limit-reset",
    "ratelimit-reset",
)
# Greater numbers are moments in s, or in ms, since the epoch.
_FIRST_EPOCH_SECONDS, _FIRST_EPOCH_MS = 1e9, 1e12
_SECONDS_BY_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}
# The parts of `6m0s` or `1h2m3.5s`.
_DURATION_PATTERN = r"(\d+(?:\.\d+)?)(ms|[smh])"


def find_pause(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds until all exhausted rate limits have been reset; 0: none is exhausted.

    `now`: seconds since the epoch.
    """
    return max(
        (
            _parse_reset_time(headers.get(limit.reset, ""), now)
            for limit in RATE_LIMIT_HEADERS
            if headers.get(limit.remaining) == "0"
        ),
        default=0.0,
    )


def _parse_reset_time(text: str, now: float) -> float:
    """Return the seconds until a reset; 0: unreadable.

    OpenAI writes a duration (`6m0s`), others a number of seconds, Anthropic a date
    (`2026-01-01T00:00:00Z`), OpenRouter and GitHub the moment in ms or s since the epoch.
    """
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        return max((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now, 0.0)
    if durations := compile_once(_DURATION_PATTERN).findall(text):
        return sum(float(number) * _SECONDS_BY_UNIT[unit] for number, unit in durations)
    with suppress(ValueError):
        seconds = float(text)
        if seconds >= _FIRST_EPOCH_MS:
            seconds /= 1000
        return max(seconds - now if seconds >= _FIRST_EPOCH_SECONDS else seconds, 0.0)
    return 0.0


def parse_retry_after(headers: Mapping[str, str], *, is_limited: bool = False) -> float | None:
    """Return the seconds to wait that a service asks for; None: it does not say.

    By `retry-after-ms` or `retry-after` (seconds, a duration, or a date),
    else by the resets of exhausted rate limits.
    `is_limited`: the answer is about a rate limit, so that a reset counts, too,
    of which no rest is told.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0), ("x-retry-after", 1.0)):
        value = headers.get(name, "").strip()
        with suppress(ValueError):
            seconds = float(value) * scale
            # `float` accepts "nan" too.
            return max(seconds, 0.0) if not isnan(seconds) else None
        if value and (moment := _parse_date(value)) is not None:
            return max(moment - time.time(), 0.0)
        if value and (seconds := _parse_reset_time(value, time.time())):
            return seconds
    if pause := find_pause(headers, time.time()):
        return pause
    if not is_limited:
        return None
    told = (
        headers.get(limit.reset, "")
        for limit in RATE_LIMIT_HEADERS
        if limit.remaining not in headers
    )
    texts = (*told, *(headers.get(name, "") for name in _RESET_HEADERS))
    return max((_parse_reset_time(text, time.time()) for text in texts), default=0.0) or None


def _parse_date(value: str) -> float | None:
    """Return an HTTP date as seconds since the epoch; None: it is not a date."""
    # Imported here: it is only needed after a failed attempt.
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
