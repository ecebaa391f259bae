"""Adapts the JSON Schema of a tool's parameters to what one vendor accepts. Pure.

A service refuses the whole request for one keyword that it does not know.
"""

from typing import Any, Literal

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON

SchemaDialect = Literal["", "moonshot"]
"""How a vendor differs, apart from the keywords that it refuses.

`moonshot`: `$ref` has no siblings; a union has its types in its members; the items of a list have one schema.
"""
_SCHEMA_MAP_KEYWORDS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords whose value is an object of names, each with a schema."""
_UNION_KEYWORDS = ("anyOf", "oneOf")
# OpenAI and Anthropic refuse a union at the top, which schemas of MCP servers often have.
_NON_ROOT_KEYWORDS = frozenset(
    {"allOf", *_UNION_KEYWORDS, "not", "enum", "const", "if", "then", "else", "$ref", "$schema", "$id"}
)
"""Keywords that are refused or useless at the top of a tool's parameters. Calls are still checked against them."""
_PLAIN_ROOT_KEYWORDS = {"type", "properties"}


def adapt_parameters(schema: JSON, refused_keywords: frozenset[str], dialect: SchemaDialect = "") -> JSON:
    """Return the schema of an object without what the vendor refuses; the same one if nothing has to change."""
    result = _adapt_schema(flatten_root(schema), refused_keywords, dialect)
    return schema if result == schema else result


def flatten_root(schema: JSON) -> JSON:
    """Move the properties of unions to the top of a schema, since services refuse tools with a union there.

    Properties that not all members of a union require are optional.
    """
    if (
        schema.get("type") == "object"
        and schema.keys() >= _PLAIN_ROOT_KEYWORDS
        and not schema.keys() & _NON_ROOT_KEYWORDS
    ):
        return schema
    root_schema = {key: value for key, value in schema.items() if key not in _NON_ROOT_KEYWORDS}
    properties, required_names = _collect_members(schema, schema, ())
    plain: JSON = {**root_schema, "type": "object", "properties": properties}
    return {**plain, "required": required_names} if required_names else plain


def _collect_members(node: JSON, root: JSON, references: tuple[str, ...]) -> tuple[JSON, list[str]]:
    """Return properties and required names of a schema and its members; `references`: those that led to it."""
    properties: JSON = dict(node.get("properties") or {})
    required_names: list[str] = list(node.get("required") or [])
    every = _list_subschemas(node, "allOf")
    target = node.get("$ref")
    # A schema may contain itself: each reference is followed once.
    if isinstance(target, str) and target not in references:
        references = (*references, target)
        every = [_resolve_reference(root, target), *every]
    for each in every:
        more, names = _collect_members(each, root, references)
        properties = {**more, **properties}
        required_names += names
    for key in _UNION_KEYWORDS:
        members = [_collect_members(each, root, references) for each in _list_subschemas(node, key)]
        for more, _ in members:
            properties = {**more, **properties}
        if members:
            required_names += [name for name in members[0][1] if all(name in names for _, names in members)]
    return properties, [name for name in dict.fromkeys(required_names) if name in properties]


def _list_subschemas(node: JSON, key: str) -> list[JSON]:
    """Return the schemas of a keyword that holds a list."""
    value = node.get(key)
    return [each for each in value if is_object(each)] if is_list(value) else []


def _resolve_reference(root: JSON, target: str) -> JSON:
    """Return the schema that a reference within `root` names; empty when there is none."""
    node: Any = root
    for name in target.removeprefix("#").split("/")[1:]:
        node = node.get(name.replace("~1", "/").replace("~0", "~")) if is_object(node) else None
    return node if is_object(node) else {}


def _adapt_schema(schema: JSON, refused_keywords: frozenset[str], dialect: SchemaDialect) -> JSON:
    result = {
        key: _adapt_keyword(key, value, refused_keywords, dialect)
        for key, value in schema.items()
        if key not in refused_keywords
    }
    if result.get("type") == "array" and "items" not in result:
        # OpenAI and Google refuse an array without a schema of its items; an empty one allows everything.
        result["items"] = {}
    return _adapt_to_moonshot(result) if dialect == "moonshot" else result


def _adapt_to_moonshot(node: JSON) -> JSON:
    # Moonshot refuses keywords next to a reference, and a type next to a union.
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    if is_list(items := node.get("items")):
        node = {**node, "items": items[0] if items else {}}
    union = next((key for key in _UNION_KEYWORDS if is_list(node.get(key))), None)
    if union is None or "type" not in node:
        return node
    shared = {"type": node["type"]}
    members = [{**shared, **each} if is_object(each) and "$ref" not in each else each for each in node[union]]
    return {key: members if key == union else value for key, value in node.items() if key != "type"}


def _adapt_keyword(key: str, value: Any, refused_keywords: frozenset[str], dialect: SchemaDialect) -> Any:
    if is_object(value):
        if key in _SCHEMA_MAP_KEYWORDS:
            return {
                name: _adapt_schema(member, refused_keywords, dialect) if is_object(member) else member
                for name, member in value.items()
            }
        # These are values, not schemas, even if they are objects.
        return value if key in {"const", "default"} else _adapt_schema(value, refused_keywords, dialect)
    if is_list(value) and key not in {"enum", "required"}:
        return [_adapt_schema(item, refused_keywords, dialect) if is_object(item) else item for item in value]
    return value
