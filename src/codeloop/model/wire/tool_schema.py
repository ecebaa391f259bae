"""The schema of a tool's parameters as one vendor takes it. Pure: equal schemas give equal ones."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from codeloop.model.chat import ToolSpec
from codeloop.model.quirks import Quirks
from codeloop.schema.wire import JSON

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords whose value is an object of names, each with a schema."""


def parameters_of(schema: JSON, quirks: Quirks) -> tuple[JSON, bool]:
    """Return the schema by the vendor's row, and whether it is to be followed strictly.

    Without the keywords that the vendor refuses. In strict mode every property is required and the optional ones may be
    null; a schema with an object of free names can't be strict, and is given as it is otherwise.
    """
    if quirks.strict_tools and _is_closed(schema):
        return _strict(_without(schema, quirks.refused_keywords | {"additionalProperties"})), True
    return _without(schema, quirks.refused_keywords), False


class ToolCache:
    """The tools of the last request as one vendor takes them: a session's requests all offer the same ones."""

    def __init__(self, write: Callable[[ToolSpec], JSON]) -> None:
        self._write = write
        self._specs: tuple[ToolSpec, ...] = ()
        self._written: list[JSON] = []

    def written(self, specs: tuple[ToolSpec, ...]) -> list[JSON]:
        """Return the tools; the same objects as before when the specs are."""
        if specs is not self._specs:
            self._specs, self._written = specs, [self._write(spec) for spec in specs]
        return self._written


def _without(schema: JSON, refused: frozenset[str]) -> JSON:
    if not refused:
        return schema
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


def _is_closed(schema: Mapping[str, Any]) -> bool:
    """Return whether every object in the schema names its properties, and every value its type."""
    if not schema.keys() & {"type", "enum", "anyOf"}:
        return False
    if schema.get("type") == "object" and ("properties" not in schema or schema.get("additionalProperties")):
        return False
    if schema.get("type") == "array" and "items" not in schema:
        return False
    return all(_is_closed(part) for part in _parts(schema))


def _parts(schema: Mapping[str, Any]) -> list[JSON]:
    items = [schema["items"]] if "items" in schema else []
    return [*schema.get("properties", {}).values(), *items, *schema.get("anyOf", [])]


def _strict(schema: JSON) -> JSON:
    result = dict(schema)
    if "items" in schema:
        result["items"] = _strict(schema["items"])
    if "anyOf" in schema:
        result["anyOf"] = [_strict(option) for option in schema["anyOf"]]
    if schema.get("type") == "object":
        needed: list[str] = schema.get("required", [])
        properties: JSON = schema["properties"]
        result["properties"] = {
            name: _strict(value) if name in needed else _nullable(_strict(value)) for name, value in properties.items()
        }
        result["required"] = list(properties)
        result["additionalProperties"] = False
    return result


def _nullable(schema: JSON) -> JSON:
    if "anyOf" in schema:
        options: list[JSON] = schema["anyOf"]
        return schema if {"type": "null"} in options else {**schema, "anyOf": [*options, {"type": "null"}]}
    result = dict(schema)
    kind = schema.get("type")
    if isinstance(kind, str):
        result["type"] = [kind, "null"]
    if "enum" in schema and None not in schema["enum"]:
        result["enum"] = [*schema["enum"], None]
    return result
