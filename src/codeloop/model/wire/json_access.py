"""Reading JSON of which only the outline is sure."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from codeloop.schema.wire import JSON


def is_json_object(value: Any) -> TypeGuard[JSON]:
    """Say whether the value is a JSON object."""
    return isinstance(value, dict)


def is_json_list(value: Any) -> TypeGuard[list[Any]]:
    """Say whether the value is a JSON array."""
    return isinstance(value, list)


def items(value: Any) -> list[JSON]:
    """Return the objects of a list, or the one object that a service sent instead of a list."""
    if is_json_object(value):
        return [value]
    return [entry for entry in value if is_json_object(entry)] if is_json_list(value) else []


def count(source: Mapping[str, Any], *path: str) -> int:
    """Return the whole number at the path; 0 when there is none."""
    value: Any = source
    for name in path:
        value = value.get(name) if is_json_object(value) else None
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def text(value: Any) -> str:
    """Return the value when it is text, else nothing."""
    return value if isinstance(value, str) else ""
