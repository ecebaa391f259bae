"""JSON Schemas of tool parameters as models read them: inlined, without what only machines need."""

from typing import Any, cast

import msgspec

from codeloop.schema.wire import JSON

NOISE = frozenset({"title", "default", "minimum", "exclusiveMinimum", "minLength", "minItems"})


def parameters_schema(params: type[msgspec.Struct]) -> JSON:
    """Return the schema of a parameter struct: one object, no `$ref`, no titles, no defaults, no lower bounds."""
    (schema,), definitions = msgspec.json.schema_components([params], ref_template="{name}")
    for definition in definitions.values():
        definition.pop("description", None)  # the struct's docstring, which is for us
    return _inlined(schema, definitions)


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


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    node = cast("JSON", value)
    if "$ref" in node:
        return _inlined(definitions[node["$ref"]], definitions)
    kept = {key: item for key, item in node.items() if key not in NOISE}
    if "anyOf" in kept:
        kept = _without_null(kept)
    result: JSON = {}
    for key, item in kept.items():
        if key == "properties":
            result[key] = {name: _inlined(field, definitions) for name, field in item.items()}
        else:
            result[key] = _inlined(item, definitions)
    if result.get("required") == []:
        del result["required"]
    return result


def _without_null(node: JSON) -> JSON:
    """Show `anyOf [X, null]` as X: an optional parameter is left out, not null."""
    options = [option for option in node["anyOf"] if option.get("type") != "null"]
    if len(options) != 1:
        return {**node, "anyOf": options}
    rest = {key: item for key, item in node.items() if key != "anyOf"}
    return {**options[0], **rest}
