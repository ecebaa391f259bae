"""Reads fields of a host's JSON objects, in which any field may be missing, null or of another type."""

from typing import Any, cast

from codeloop.schema.wire import JSON


def object_at(row: JSON, name: str) -> JSON:
    """Return the object in a field; {} if the field has none."""
    value: Any = row.get(name)
    return cast("JSON", value) if isinstance(value, dict) else {}


def list_at(row: JSON, name: str) -> list[Any]:
    """Return the list in a field; [] if the field has none."""
    value: Any = row.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_at(row: JSON, name: str) -> str:
    """Return the text in a field, or the number as text; "" if the field has neither."""
    value: Any = row.get(name)
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
