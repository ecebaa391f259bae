"""Reads fields of JSON objects that hosts send, in which any field may be missing,
null or of another type.
"""

import math
from datetime import UTC, datetime
from typing import Any, cast

from codeloop.schema.wire import JSON


def to_object(value: Any) -> JSON:
    """Return a value that is an object; {} for any other value."""
    return cast("JSON", value) if isinstance(value, dict) else {}


def to_list(value: Any) -> list[Any]:
    """Return a value that is a list; [] for any other value."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def get_object(row: JSON, name: str) -> JSON:
    """Return the object in a field; {} if there is none."""
    return to_object(row.get(name))


def get_list(row: JSON, name: str) -> list[Any]:
    """Return the list in a field; [] if there is none."""
    return to_list(row.get(name))


def get_text(row: JSON, name: str) -> str:
    """Return the text in a field, or its integer as text; "" if there is neither."""
    value: Any = row.get(name)
    return str(value) if isinstance(value, str | int) else ""


def parse_moment(text: str) -> float:
    """Return a host's time, such as `2026-01-02T03:04:05Z` or `2026-01-02 03:04:05 UTC`,
    in seconds since the epoch.

    inf: the text is none.
    """
    try:
        moment = datetime.fromisoformat(text.replace(" UTC", "Z"))
    except ValueError:
        return math.inf
    # Times without a zone are in UTC.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
