"""Makes the JSON schemas of tool parameters that models read: short,
without references and validation keywords.
"""

from typing import Any, cast

import msgspec

from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.wire import JSON

# Keywords that tell a model nothing it needs, and cost tokens in every request.
OMITTED_KEYWORDS = frozenset(
    {"title", "default", "minimum", "exclusiveMinimum", "minLength", "minItems"}
)


UNSENT_KEY = "unsent"
"""The key of a parameter's schema that says that models are not told of the parameter;
calls with it are understood.
"""
UNSENT: dict[str, Any] = {UNSENT_KEY: True}


def drop_unsent(schema: JSON) -> JSON:
    """Return a schema of ours as requests contain it: without the parameters
    that are marked as unsent.
    """
    properties: dict[str, JSON] | None = schema.get("properties")
    if properties is None:
        return (
            {**schema, "items": drop_unsent(schema["items"])}
            if isinstance(schema.get("items"), dict)
            else schema
        )
    sent = {name: drop_unsent(each) for name, each in properties.items() if UNSENT_KEY not in each}
    required = [name for name in schema.get("required", ()) if name in sent]
    rest = {key: value for key, value in schema.items() if key not in {"properties", "required"}}
    return {**rest, "properties": sent, **({"required": required} if required else {})}


def make_parameters_schema(params: type[msgspec.Struct]) -> JSON:
    """Return the schema of a parameter struct: one object, no `$ref`, no titles, no defaults,
    no lower bounds.
    """
    (schema,), definitions = msgspec.json.schema_components([params], ref_template="{name}")
    for definition in definitions.values():
        # The description is the struct's docstring, which is written for programmers.
        definition.pop("description", None)
    return inline_references(schema, definitions)


def drop_nulls(value: Any, schema: JSON) -> Any:
    """Return a value of that schema without optional parameters that are null: some
    models have to send all.
    """
    if isinstance(value, list) and "items" in schema:
        return [drop_nulls(item, schema["items"]) for item in cast("list[Any]", value)]
    if not isinstance(value, dict) or "properties" not in schema:
        return cast("Any", value)
    properties: JSON = schema["properties"]
    optional = properties.keys() - schema.get("required", ())
    return {
        name: drop_nulls(item, properties.get(name, {}))
        for name, item in cast("JSON", value).items()
        if not (item is None and name in optional)
    }


def format_signature(name: str, schema: JSON) -> str:
    """Return a tool's signature: `read(filePath: string, offset?: integer)`."""
    return f"{name}({_format_members(schema)})"


def _format_members(schema: JSON) -> str:
    required = schema.get("required", [])
    properties: dict[str, JSON] = schema.get("properties", {})
    return ", ".join(
        f"{key}{'' if key in required else '?'}: {_format_type(each)}"
        for key, each in properties.items()
    )


def _format_type(schema: JSON) -> str:
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if schema.get("type") == "array":
        return f"[{_format_type(schema.get('items', {}))}]"
    if "properties" in schema:
        return f"{{{_format_members(schema)}}}"
    return str(schema.get("type", "any"))


def inline_references(value: Any, definitions: dict[str, Any], within: tuple[str, ...] = ()) -> Any:
    """Return a schema with its `$ref`s replaced and without `OMITTED_KEYWORDS`.

    A schema that contains itself is shown once, and within that as any object.
    `within`: the names being replaced.
    """
    if isinstance(value, list):
        return [inline_references(item, definitions, within) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("JSON", value)
    if "$ref" in node:
        name: str = node["$ref"]
        if name in within:
            return {"type": "object"}
        return inline_references(definitions[name], definitions, (*within, name))
    members = {key: item for key, item in node.items() if key not in OMITTED_KEYWORDS}
    if "anyOf" in members:
        members = {
            key: item
            for key, item in _simplify_any_of(members).items()
            if key not in OMITTED_KEYWORDS
        }
        if "$ref" in members:
            return inline_references(members, definitions, within)
    result: JSON = {}
    for key, item in members.items():
        if key == "properties":
            result[key] = {
                name: inline_references(field, definitions, within) for name, field in item.items()
            }
        else:
            result[key] = inline_references(item, definitions, within)
    if result.get("required") == []:
        del result["required"]
    return result


def clean_schema(value: Any) -> Any:
    """Return the schema of an external tool for models: without `$schema`,
    and with control characters escaped.

    The escapes make texts visible that a server could otherwise hide from the user.
    """
    if isinstance(value, str):
        return escape_controls(value)
    if isinstance(value, list):
        return [clean_schema(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {
            escape_controls(key): clean_schema(each)
            for key, each in cast("JSON", value).items()
            if key != "$schema"
        }
    return value


def _simplify_any_of(node: JSON) -> JSON:
    """Return `anyOf [X, null]` as X: models shall leave an optional parameter out
    instead of sending null.
    """
    options = [option for option in node["anyOf"] if option.get("type") != "null"]
    if len(options) != 1:
        return {**node, "anyOf": options}
    rest = {key: item for key, item in node.items() if key != "anyOf"}
    return {**options[0], **rest}
