"""Reads values of uncertain type from the JSON of services. Pure.

Services deviate from the types that their protocols name,
so each value is checked where it is read.
"""

from collections.abc import Mapping
from typing import Any

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON


def list_objects(value: Any) -> list[JSON]:
    """Return the objects in a JSON list; some services send one object in its place."""
    if is_object(value):
        return [value]
    return [entry for entry in value if is_object(entry)] if is_list(value) else []


def read_count(source: Mapping[str, Any], *path: str) -> int:
    """Return the positive number at a path of keys as an integer; 0 without one."""
    value: Any = source
    for name in path:
        value = value.get(name) if is_object(value) else None
    return int(value) if isinstance(value, (int, float)) and value > 0 else 0


def read_text(value: Any) -> str:
    """Return a value that is a text; "" for any other."""
    return value if isinstance(value, str) else ""
