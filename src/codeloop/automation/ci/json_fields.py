"""Reads fields of JSON objects that hosts send, in which any field may be missing, null or of another type."""

from typing import Any, cast

from codeloop.schema.wire import JSON


def get_object(row: JSON, name: str) -> JSON:
    """Return the object in a field; {} if there is none."""
    value: Any = row.get(name)
    return cast("JSON", value) if isinstance(value, dict) else {}


def get_list(row: JSON, name: str) -> list[Any]:
    """Return the list in a field; [] if there is none."""
    value: Any = row.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else []


def get_text(row: JSON, name: str) -> str:
    """Return the text in a field, or its integer as text; "" if there is neither."""
    value: Any = row.get(name)
    return str(value) if isinstance(value, str | int) else ""
