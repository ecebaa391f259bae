"""Converts values that a model sent as text to the types of a JSON Schema,
for tools that have no struct of ours.
"""

import re
from contextlib import suppress
from typing import Any

import msgspec

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON, decode_json

_WHOLE_NUMBER, _NUMBER = r"-?\d{1,15}", r"-?\d{1,15}(\.\d+)?([eE][+-]?\d{1,3})?"
_BOOLEANS = {"true": True, "false": False}


def convert_texts(value: Any, schema: Any) -> Any:
    """Return a value in which texts are numbers, booleans,
    lists or objects where the schema allows nothing else.

    A text that does not certainly mean one stays, so that the tool's own check names it.
    """
    if not is_object(schema):
        return value
    schema = _leave_null_out(schema)
    if isinstance(value, str):
        value = _convert_text(value, schema.get("type"))
    properties = schema.get("properties")
    if is_object(value) and is_object(properties):
        return {key: convert_texts(item, properties.get(key)) for key, item in value.items()}
    if is_list(value) and "items" in schema:
        return [convert_texts(item, schema["items"]) for item in value]
    return value


def _leave_null_out(schema: JSON) -> JSON:
    """Return the only other kind of a schema that also allows null, or the schema itself."""
    kinds, options = schema.get("type"), schema.get("anyOf")
    if is_list(kinds) and len(others := [kind for kind in kinds if kind != "null"]) == 1:
        return {**schema, "type": others[0]}
    if is_list(options):
        rest = [each for each in options if not (is_object(each) and each.get("type") == "null")]
        if len(rest) == 1 and is_object(rest[0]):
            return rest[0]
    return schema


def _convert_text(value: str, kind: Any) -> Any:
    text = value.strip()
    match kind:
        case "integer" | "number" if re.fullmatch(_WHOLE_NUMBER, text):
            return int(text)
        case "number" if re.fullmatch(_NUMBER, text):
            return float(text)
        case "boolean":
            return _BOOLEANS.get(text.lower(), value)
        case "array" | "object" if text.startswith("[" if kind == "array" else "{"):
            with suppress(msgspec.DecodeError, RecursionError):
                return decode_json(text)
        case _:
            pass
    return value
