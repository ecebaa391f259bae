"""JSON Schemas of tool parameters for models: inlined, without what only validators need."""

from typing import Any, cast

import msgspec

from codeloop.kit.terminal_text import escape_controls
from codeloop.schema.wire import JSON

NOISE = frozenset({"title", "default", "minimum", "exclusiveMinimum", "minLength", "minItems"})


class OwnParameters(msgspec.Struct, frozen=True):
    """Parameters of an external tool, which validates them itself."""


def parameters_schema(params: type[msgspec.Struct]) -> JSON:
    """Return the schema of a parameter struct: one object, no `$ref`, no titles, no defaults, no lower bounds."""
    (schema,), definitions = msgspec.json.schema_components([params], ref_template="{name}")
    for definition in definitions.values():
        definition.pop("description", None)  # the struct's docstring, which is for us
    return inline_references(schema, definitions)


def without_nulls(value: Any, schema: JSON) -> Any:
    """Return a value of that schema without the optional parameters that are null: some models must send them all."""
    if isinstance(value, list) and "items" in schema:
        return [without_nulls(item, schema["items"]) for item in cast("list[Any]", value)]
    if not isinstance(value, dict) or "properties" not in schema:
        return cast("Any", value)
    properties: JSON = schema["properties"]
    optional = properties.keys() - schema.get("required", ())
    return {
        name: without_nulls(item, properties.get(name, {}))
        for name, item in cast("JSON", value).items()
        if not (item is None and name in optional)
    }


def signature(name: str, schema: JSON) -> str:
    """Return a tool's signature: `read(filePath: string, offset?: integer)`."""
    return f"{name}({_format_members(schema)})"


def _format_members(schema: JSON) -> str:
    required = schema.get("required", [])
    properties: dict[str, JSON] = schema.get("properties", {})
    return ", ".join(f"{key}{'' if key in required else '?'}: {_format_type(each)}" for key, each in properties.items())


def _format_type(schema: JSON) -> str:
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if schema.get("type") == "array":
        return f"[{_format_type(schema.get('items', {}))}]"
    if "properties" in schema:
        return f"{{{_format_members(schema)}}}"
    return str(schema.get("type", "any"))


def inline_references(value: Any, definitions: dict[str, Any], within: tuple[str, ...] = ()) -> Any:
    """Return a schema without `$ref` and without noise. A recursive schema is shown once, then as any object."""
    if isinstance(value, list):
        return [inline_references(item, definitions, within) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("JSON", value)
    if "$ref" in node:
        name: str = node["$ref"]
        return (
            {"type": "object"} if name in within else inline_references(definitions[name], definitions, (*within, name))
        )
    members = {key: item for key, item in node.items() if key not in NOISE}
    if "anyOf" in members:
        members = {key: item for key, item in _without_null(members).items() if key not in NOISE}
        if "$ref" in members:
            return inline_references(members, definitions, within)
    result: JSON = {}
    for key, item in members.items():
        if key == "properties":
            result[key] = {name: inline_references(field, definitions, within) for name, field in item.items()}
        else:
            result[key] = inline_references(item, definitions, within)
    if result.get("required") == []:
        del result["required"]
    return result


def clean_schema(value: Any) -> Any:
    """Return a schema as models read it: hidden characters shown by name, without what only validators use."""
    if isinstance(value, str):
        return escape_controls(value)
    if isinstance(value, list):
        return [clean_schema(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            escape_controls(key): clean_schema(each) for key, each in cast("JSON", value).items() if key != "$schema"
        }
    return value


def _without_null(node: JSON) -> JSON:
    """Show `anyOf [X, null]` as X: an optional parameter is left out, not null."""
    options = [option for option in node["anyOf"] if option.get("type") != "null"]
    if len(options) != 1:
        return {**node, "anyOf": options}
    rest = {key: item for key, item in node.items() if key != "anyOf"}
    return {**options[0], **rest}
