"""Finds in the body of a refusal how long the service asks to wait. Pure."""

import re
from collections.abc import Iterator
from typing import Any

from codeloop.kit.jsonc import is_list, is_object
from codeloop.net.wait_hints import DURATION_PATTERN, MOMENT_PATTERN

# Names of fields, in small letters and without `_` and `-`: `retry_after_ms`, Google's
# `retryDelay` and `quotaResetDelay`, `resets_in_seconds`, `estimated_time`.
_WAIT_FIELD = (
    r"(?:(?:retry(?:after|delay|in|at)|(?:quota)?resets?(?:after|delay|in|at|timestamp)"
    r"|waittime|estimatedtime))(?:s|sec|seconds)?(ms|milliseconds)?"
)
# "Please try again in 1m30.5s", "retry after 12 seconds", "your quota will reset after 3h12m".
_WAIT_PATTERN = (
    r"(?:\b(?:wait|back ?off)(?: at least| about| another)?"
    r"|(?:\bagain|\bretry|\bwait|\bresets?|\bavailable|\bback ?off|\bcool ?down)\b[^.;!?\d]{0,30}?"
    rf"(?:\b(?:in|after|for|at|until)|:)) ?(?P<wait>{MOMENT_PATTERN}|{DURATION_PATTERN})"
    r"|\bretry[- ]after:? (?P<seconds>\d+(?:\.\d+)?)"
)
_SEARCHED_CHARACTERS = 4_000
_SEARCHED_DEPTH, _SEARCHED_ITEMS = 6, 50


def find_retry_after(payload: Any, message: str = "") -> dict[str, str]:
    """Return the wait that a body asks for, as the headers that would say the same;
    empty without one.

    By headers that OpenRouter repeats, by fields such as `retry_after`, at any depth,
    or by its `message`.
    """
    match payload:
        case {"error": {"metadata": {"headers": repeated}}} if is_object(repeated):
            return {name.lower(): str(value) for name, value in repeated.items()}
        case _:
            pass
    # Sorted by name: what is said of a retry before what is said of a limit's reset.
    fields = sorted(_list_wait_fields(payload, _SEARCHED_DEPTH), key=lambda field: field[0] != "r")
    for _, is_ms, value in fields:
        return {"retry-after-ms" if is_ms else "retry-after": value}
    if found := re.search(_WAIT_PATTERN, message[:_SEARCHED_CHARACTERS], re.IGNORECASE):
        return {"retry-after": found["wait"] or found["seconds"]}
    return {}


def _list_wait_fields(payload: Any, depth: int) -> Iterator[tuple[str, bool, str]]:
    """Yield the fields that say when to ask again: their names without `_`,
    whether they are in ms, and their values.
    """
    if depth == 0:
        return
    if is_list(payload):
        for item in payload[:_SEARCHED_ITEMS]:
            yield from _list_wait_fields(item, depth - 1)
    elif is_object(payload):
        for key, value in list(payload.items())[:_SEARCHED_ITEMS]:
            name = re.sub("[_-]", "", key).lower()
            if (match := re.fullmatch(_WAIT_FIELD, name)) and (text := _format_wait(value)):
                yield name, match[1] is not None, text
            else:
                yield from _list_wait_fields(value, depth - 1)


def _format_wait(value: Any) -> str:
    """Return a field's value as a header would say it; empty if it says nothing."""
    match value:
        case bool():
            return ""
        # Google's duration, where it is not written as text.
        case {"seconds": int() | str() as seconds}:
            try:
                return str(float(seconds) + float(value.get("nanos") or 0) / 1e9)
            except (ValueError, TypeError):
                return ""
        case int() | float() | str():
            return str(value)
        case _:
            return ""
