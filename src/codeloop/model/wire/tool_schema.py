"""The schema of a tool's parameters as one vendor takes it. Pure: equal schemas give equal ones."""

from typing import Any, cast

from codeloop.schema.wire import JSON

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords whose value is an object of names, each with a schema."""


def parameters_of(schema: JSON, refused: frozenset[str]) -> JSON:
    """Return the schema without the keywords that the vendor refuses; the schema itself when it refuses none."""
    return _without(schema, refused) if refused else schema


def _without(schema: JSON, refused: frozenset[str]) -> JSON:
    return {key: _each(key, value, refused) for key, value in schema.items() if key not in refused}


def _each(key: str, value: Any, refused: frozenset[str]) -> Any:
    if isinstance(value, dict):
        members = cast("JSON", value)
        if key in _MAPS:
            return {name: _without(member, refused) for name, member in members.items()}
        return _without(members, refused)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_each("", item, refused) for item in items]
    return value
