"""Reads fields of JSON objects that hosts send, in which any field may be missing, null or of another type."""

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
