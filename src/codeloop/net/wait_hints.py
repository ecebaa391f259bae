"""Reads when a service accepts requests again: from the headers of an answer, or from a text.
Pure.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

LIMITED_STATUSES = frozenset({429, 503, 529})
"""The HTTP statuses of an answer that is about a limit."""

# Greater numbers are moments in s, or in ms, since the epoch.
_FIRST_EPOCH_SECONDS, _FIRST_EPOCH_MS = 1e9, 1e12
# No wait is told in more; a service may send any text.
_MAX_CHARACTERS = 200
# By the beginning of a unit's name; the first that matches counts.
_UNITS = (
    ("ms", 1e-3), ("mil", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9),
    ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0),
)  # fmt: skip
_AMOUNT = (
    r"(?:\d+(?:\.\d+)? ?|\ban? )"
    r"(?:ms|milliseconds?|[uµn]s|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
)
# "6m0s", "1 minute, 30 seconds", "2 hours and 5 minutes". Units may touch the next number.
DURATION_PATTERN = rf"{_AMOUNT}(?:,? ?(?:and )?{_AMOUNT})*"
MOMENT_PATTERN = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z| ?UTC|[+-]\d\d:?\d\d)?"
_ISO_DURATION = r"P(?:(?P<d>\d+)D)?T?(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?"
_CLOCK_DURATION = r"(?P<h>\d+):(?P<m>\d\d):(?P<s>\d\d(?:\.\d+)?)"
# Of the drafts of a standard: `limit=9, remaining=0, reset=50` and `"default";r=0;t=50`.
_LIMIT_FIELD = r"\b(?:remaining|r)\s*=\s*(\d+)\s*[;,]\s*(?:reset|t)\s*=\s*(\d+)"


class _Reset(NamedTuple):
    """When a limit is reset, in the service's words. `is_exhausted`: None: it does not say."""

    when: str
    is_exhausted: bool | None


def is_wait_header(name: str) -> bool:
    """Return whether a header, in lower case, may say when to ask again."""
    return "retry-after" in name or name.replace("rate-limit", "ratelimit").removeprefix(
        "x-"
    ).removeprefix("anthropic-").startswith("ratelimit")


def read_wait(headers: Mapping[str, str], now: float, *, is_limited: bool = False) -> float | None:
    """Return the seconds to wait that a refusal asks for; None: it does not say.

    By `retry-after-ms` or `retry-after` in any form, else by the resets of exhausted limits.
    `now`: seconds since the epoch. `is_limited`: the answer is about a rate limit, so that a
    reset counts, too, of which no rest is told.
    """
    now = _read_clock(headers, now)
    names = sorted(
        (name for name in headers if name.endswith(("retry-after-ms", "retry-after"))),
        key=lambda name: (not name.endswith("-ms"), name),
    )
    for name in names:
        wait = parse_wait(headers[name], now)
        if wait is not None:
            return wait / 1000 if name.endswith("-ms") else wait
    resets = [reset for reset in _list_resets(headers) if reset.is_exhausted is not False]
    exhausted = [reset for reset in resets if reset.is_exhausted]
    return _find_latest(exhausted or (resets if is_limited else []), now) or None


def find_pause(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds until all exhausted rate limits have been reset; 0: none is exhausted.

    `now`: seconds since the epoch.
    """
    exhausted = [reset for reset in _list_resets(headers) if reset.is_exhausted]
    return _find_latest(exhausted, _read_clock(headers, now)) if exhausted else 0.0


def parse_wait(text: str, now: float) -> float | None:
    """Return the seconds that a text asks to wait, at least 0; None: unreadable.

    It may be a number of seconds, a moment in s or ms since the epoch, a duration (`6m0s`,
    `2 minutes`, `PT30S`, `00:00:30`), an HTTP date or one of ISO 8601.
    """
    text = text[:_MAX_CHARACTERS].strip().strip('"')
    if re.fullmatch(r"[+-]?\d+(?:\.\d+)?(?:e\+?\d{1,2})?", text, re.ASCII | re.IGNORECASE):
        seconds = float(text)
        if seconds >= _FIRST_EPOCH_MS:
            seconds /= 1000
        return max(seconds - now if seconds >= _FIRST_EPOCH_SECONDS else seconds, 0.0)
    if re.fullmatch(DURATION_PATTERN, text, re.IGNORECASE):
        return sum(map(_read_amount, re.findall(_AMOUNT, text.lower())))
    for pattern in (_ISO_DURATION, _CLOCK_DURATION):
        if (match := re.fullmatch(pattern, text)) and any(match.groups()):
            parts = match.groupdict()
            return sum(float(value) * _get_unit(unit) for unit, value in parts.items() if value)
    if (moment := _parse_moment(text)) is not None:
        return max(moment - now, 0.0)
    # A header that was sent twice, or has parameters. The comma of a date was read above.
    first, separator, _ = re.sub(r"[;,]", "\0", text, count=1).partition("\0")
    return parse_wait(first, now) if separator else None


def _list_resets(headers: Mapping[str, str]) -> Iterable[_Reset]:
    for name, value in headers.items():
        if "ratelimit" not in name and "rate-limit" not in name:
            continue
        if name.endswith("ratelimit"):
            for rest, seconds in re.findall(_LIMIT_FIELD, value):
                yield _Reset(seconds, int(rest) == 0)
        elif "reset" in name:
            stem = name.replace("reset-after", "reset")
            yield _Reset(value, _is_exhausted(headers, stem))


def _is_exhausted(headers: Mapping[str, str], name: str) -> bool | None:
    """Return whether the limit is exhausted whose reset a header of this name tells."""
    if status := headers.get(name.replace("reset", "status")):
        return status == "rejected"
    with suppress(ValueError):
        return float(headers.get(name.replace("reset", "remaining"), "")) <= 0
    return None


def _find_latest(resets: Iterable[_Reset], now: float) -> float:
    """Return the seconds until the last of these resets; 0: none can be read."""
    return max((parse_wait(reset.when, now) or 0.0 for reset in resets), default=0.0)


def _read_clock(headers: Mapping[str, str], now: float) -> float:
    """Return the service's own time, in seconds since the epoch: what its moments refer to."""
    moment = _parse_moment(headers.get("date", ""))
    return now if moment is None else moment


def _parse_moment(text: str) -> float | None:
    """Return an HTTP date, or one of ISO 8601, as seconds since the epoch; None: neither."""
    if not text:
        return None
    # Imported here: few answers hold a date.
    from email.utils import parsedate_to_datetime

    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, OverflowError):
            moment = parse(text.removesuffix(" UTC").removesuffix("UTC"))
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _read_amount(text: str) -> float:
    number, unit = re.findall(r"[\d.]+|an?(?= )|[a-zµ]+", text)
    return (1.0 if number.startswith("a") else float(number)) * _get_unit(unit)


def _get_unit(name: str) -> float:
    return next(seconds for prefix, seconds in _UNITS if name.startswith(prefix))
