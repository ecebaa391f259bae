"""Makes the JSON schemas of tool parameters that models read: short,
without references and validation keywords.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.wire import JSON

# Keywords that tell a model nothing it needs, and cost tokens in every request.
OMITTED_KEYWORDS = frozenset(
    {"title", "default", "minimum", "exclusiveMinimum", "minLength", "minItems"}
)


# What services accept as the name of a property; Anthropic refuses the request for another.
_MAX_KEY_CHARS = 64
_SERVICE_KEY = r"[a-zA-Z0-9_.-]{1,64}"
# The keywords whose keys are names, and whose values are schemas; those that hold no schemas.
_SCHEMA_MAPS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
_DATA_KEYWORDS = frozenset({"enum", "const", "default", "examples", "example"})

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


def name_properties(schema: JSON) -> dict[str, str]:
    """Return the names under which models are told of the properties of a schema, at any depth,
    whose own names services refuse.
    """
    keys = dict.fromkeys(_list_property_keys(schema))
    refused = [key for key in keys if not re.fullmatch(_SERVICE_KEY, key)]
    names: dict[str, str] = {}
    for key in refused:
        name = re.sub(r"[^a-zA-Z0-9_.-]+", "_", key).strip("_")[:_MAX_KEY_CHARS] or "value"
        stem, number = name[: _MAX_KEY_CHARS - 4], 1
        while name in keys or name in names.values():
            number += 1
            name = f"{stem}_{number}"
        names[key] = name
    return names


def _list_property_keys(schema: Any) -> Iterator[str]:
    for key, inner in _list_keywords(schema):
        if key == "properties" and is_object(inner):
            yield from inner
        for each in inner.values() if key in _SCHEMA_MAPS and is_object(inner) else (inner,):
            yield from _list_property_keys(each)


def _list_keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of a schema, or of each in a list, that may hold schemas."""
    for each in schema if is_list(schema) else (schema,):
        if is_object(each):
            yield from ((key, inner) for key, inner in each.items() if key not in _DATA_KEYWORDS)


def rename_properties(schema: Any, names: dict[str, str]) -> Any:
    """Return a schema whose properties have these names instead."""
    if not names:
        return schema
    if is_list(schema):
        return [rename_properties(each, names) for each in schema]
    if not is_object(schema):
        return schema
    renamed: JSON = {}
    for key, inner in schema.items():
        if key in _SCHEMA_MAPS and is_object(inner):
            of_map = names if key in {"properties", "dependentSchemas"} else {}
            renamed[key] = {
                of_map.get(name, name): rename_properties(each, names)
                for name, each in inner.items()
            }
        elif key == "required" and is_list(inner):
            renamed[key] = [names.get(str(name), name) for name in inner]
        else:
            renamed[key] = inner if key in _DATA_KEYWORDS else rename_properties(inner, names)
    return renamed


def restore_properties(value: Any, schema: JSON, names: dict[str, str]) -> Any:
    """Return the arguments of a call with the schema's own names of its properties, where it has
    them: an object that may have any keys keeps them. `names`: the own names by those told.
    """
    return _restore(value, [schema], names, schema) if names else value


def _restore(value: Any, schemas: list[Any], names: dict[str, str], root: JSON) -> Any:
    applied = list(_list_applied(schemas, root))
    if is_list(value):
        inner = [each[key] for each in applied for key in ("items", "prefixItems") if key in each]
        items = [each for found in inner for each in (found if is_list(found) else [found])]
        return [_restore(item, items, names, root) for item in value]
    if not is_object(value):
        return value
    maps = [each["properties"] for each in applied if is_object(each.get("properties"))]
    patterns = [each.get("patternProperties") for each in applied]
    others = [
        *(each.get("additionalProperties") for each in applied),
        *(inner for found in patterns if is_object(found) for inner in found.values()),
    ]
    restored: JSON = {}
    for key, item in value.items():
        own = names.get(key, key)
        found = [properties[own] for properties in maps if own in properties]
        restored[own if found else key] = _restore(item, found or others, names, root)
    return restored


def _list_applied(schemas: list[Any], root: JSON) -> Iterator[JSON]:
    """Yield schemas, and those that they apply to the same value."""
    seen: set[int] = set()
    rest = list(schemas)
    while rest:
        schema = rest.pop()
        if not is_object(schema) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        rest += [schema.get(key) for key in ("if", "then", "else")]
        for key in ("allOf", "anyOf", "oneOf"):
            rest += schema[key] if is_list(schema.get(key)) else []
        if isinstance(schema.get("$ref"), str):
            rest.append(_find_reference(schema["$ref"], root))


def _find_reference(reference: str, root: JSON) -> Any:
    """Return the target of a `$ref` within a schema; None: nothing."""
    found: Any = root
    start, *parts = reference.split("/")
    for part in parts:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if is_object(found) else None
    return found if start == "#" else None


def _simplify_any_of(node: JSON) -> JSON:
    """Return `anyOf [X, null]` as X: models shall leave an optional parameter out
    instead of sending null.
    """
    options = [option for option in node["anyOf"] if option.get("type") != "null"]
    if len(options) != 1:
        return {**node, "anyOf": options}
    rest = {key: item for key, item in node.items() if key != "anyOf"}
    return {**options[0], **rest}
