"""Adapts a tool's parameter schema to one vendor. Pure."""

from typing import Any, Literal

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON

SchemaDialect = Literal["", "moonshot"]
"""How a vendor differs beside the keywords that it refuses.

`moonshot`: nothing stands beside `$ref`; a union has its types in its members; the items of a list have one schema.
"""
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords whose value is an object of names, each with a schema."""
_UNIONS = ("anyOf", "oneOf")
_NO_ROOT = frozenset({"allOf", *_UNIONS, "not", "enum", "const", "if", "then", "else", "$ref", "$schema", "$id"})
"""Refused at the top of a tool's parameters, or of no use there. What they demand is checked when a call comes."""
_PLAIN_ROOT = {"type", "properties"}


def parameters_of(schema: JSON, unsupported: frozenset[str], dialect: SchemaDialect = "") -> JSON:
    """Return the schema of an object without what the vendor refuses; the schema itself where nothing is changed."""
    cleaned = _clean(plain_root(schema), unsupported, dialect)
    return schema if cleaned == schema else cleaned


def plain_root(schema: JSON) -> JSON:
    """Return a schema with its properties at the top: services refuse every request with a tool that has a union there.

    Properties that not all members of a union require are optional.
    """
    if schema.get("type") == "object" and schema.keys() >= _PLAIN_ROOT and not schema.keys() & _NO_ROOT:
        return schema
    root_schema = {key: value for key, value in schema.items() if key not in _NO_ROOT}
    properties, required = _members(schema, schema, ())
    plain: JSON = {**root_schema, "type": "object", "properties": properties}
    return {**plain, "required": required} if required else plain


def _members(node: JSON, root: JSON, seen: tuple[str, ...]) -> tuple[JSON, list[str]]:
    """Return properties and required names of a schema with those of its members; `seen`: references that led to it."""
    properties: JSON = dict(node.get("properties") or {})
    required: list[str] = list(node.get("required") or [])
    every = _list(node, "allOf")
    target = node.get("$ref")
    if isinstance(target, str) and target not in seen:
        seen = (*seen, target)
        every = [_find(root, target), *every]
    for each in every:
        more, names = _members(each, root, seen)
        properties = {**more, **properties}
        required += names
    for key in _UNIONS:
        members = [_members(each, root, seen) for each in _list(node, key)]
        for more, _ in members:
            properties = {**more, **properties}
        if members:
            required += [name for name in members[0][1] if all(name in names for _, names in members)]
    return properties, [name for name in dict.fromkeys(required) if name in properties]


def _list(node: JSON, key: str) -> list[JSON]:
    """Return the schemas of a keyword that holds a list."""
    value = node.get(key)
    return [each for each in value if is_object(each)] if is_list(value) else []


def _find(root: JSON, target: str) -> JSON:
    """Return the schema that a reference within `root` names; empty when there is none."""
    node: Any = root
    for name in target.removeprefix("#").split("/")[1:]:
        node = node.get(name.replace("~1", "/").replace("~0", "~")) if is_object(node) else None
    return node if is_object(node) else {}


def _clean(schema: JSON, unsupported: frozenset[str], dialect: SchemaDialect) -> JSON:
    cleaned = {
        key: _convert_keyword(key, value, unsupported, dialect)
        for key, value in schema.items()
        if key not in unsupported
    }
    if cleaned.get("type") == "array" and "items" not in cleaned:
        cleaned["items"] = {}  # some refuse a list of unknown things without it
    return _for_moonshot(cleaned) if dialect == "moonshot" else cleaned


def _for_moonshot(node: JSON) -> JSON:
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    if is_list(items := node.get("items")):
        node = {**node, "items": items[0] if items else {}}
    union = next((key for key in _UNIONS if is_list(node.get(key))), None)
    if union is None or "type" not in node:
        return node
    inherited = {"type": node["type"]}
    members = [{**inherited, **each} if is_object(each) and "$ref" not in each else each for each in node[union]]
    return {key: members if key == union else value for key, value in node.items() if key != "type"}


def _convert_keyword(key: str, value: Any, unsupported: frozenset[str], dialect: SchemaDialect) -> Any:
    if is_object(value):
        if key in _MAPS:
            return {
                name: _clean(member, unsupported, dialect) if is_object(member) else member
                for name, member in value.items()
            }
        return value if key in {"const", "default"} else _clean(value, unsupported, dialect)
    if is_list(value) and key not in {"enum", "required"}:
        return [_clean(item, unsupported, dialect) if is_object(item) else item for item in value]
    return value
