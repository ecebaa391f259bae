"""Adapts the JSON Schema of a tool's parameters to what one vendor accepts. Pure.

A service refuses the whole request for one keyword that it does not know.
"""

from typing import Any, Literal, NamedTuple

from codeloop.kit.jsonc import is_list, is_object
from codeloop.schema.wire import JSON

SchemaDialect = Literal["", "moonshot"]
"""How a vendor differs, apart from the keywords that it refuses.

`moonshot`: `$ref` has no siblings; a union has its types in its members;
the items of a list have one schema.
"""
_SCHEMA_MAP_KEYWORDS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Keywords whose value is an object of names, each with a schema."""
_UNION_KEYWORDS = ("anyOf", "oneOf")
# OpenAI and Anthropic refuse a union at the top, which schemas of MCP servers often have.
_NON_ROOT_KEYWORDS = frozenset(
    {
        "allOf",
        *_UNION_KEYWORDS,
        "not",
        "enum",
        "const",
        "if",
        "then",
        "else",
        "$ref",
        "$schema",
        "$id",
    }
)
"""Keywords that are refused or useless at the top of a tool's parameters.
Calls are still checked against them.
"""
_PLAIN_ROOT_KEYWORDS = {"type", "properties"}


def adapt_parameters(
    schema: JSON, refused_keywords: frozenset[str], dialect: SchemaDialect = ""
) -> JSON:
    """Return the schema of an object without what the vendor refuses;
    the same one if nothing has to change.
    """
    result = _adapt_schema(flatten_root(schema), refused_keywords, dialect)
    return schema if result == schema else result


def flatten_root(schema: JSON) -> JSON:
    """Move the properties of unions to the top of a schema,
    since services refuse tools with a union there.

    Properties that not all members of a union require are optional.
    """
    if (
        schema.get("type") == "object"
        and schema.keys() >= _PLAIN_ROOT_KEYWORDS
        and not schema.keys() & _NON_ROOT_KEYWORDS
    ):
        return schema
    root_schema = {key: value for key, value in schema.items() if key not in _NON_ROOT_KEYWORDS}
    parts = _collect_parts(schema, schema, ())
    flat_schema: JSON = {**root_schema, "type": "object", "properties": parts.properties}
    return (
        {**flat_schema, "required": parts.required_names} if parts.required_names else flat_schema
    )


class _ObjectParts(NamedTuple):
    properties: JSON
    required_names: list[str]


def _collect_parts(node: JSON, root: JSON, references: tuple[str, ...]) -> _ObjectParts:
    """Return the properties of a schema and of its members;
    `references`: those that were followed to get there.
    """
    properties: JSON = dict(node.get("properties") or {})
    required_names: list[str] = list(node.get("required") or [])
    # All of these hold at once: what one of them requires is required.
    merged_schemas = _list_subschemas(node, "allOf")
    target = node.get("$ref")
    # A schema may contain itself: each reference is followed once.
    if isinstance(target, str) and target not in references:
        references = (*references, target)
        merged_schemas = [resolve_reference(root, target), *merged_schemas]
    for merged_schema in merged_schemas:
        parts = _collect_parts(merged_schema, root, references)
        properties = {**parts.properties, **properties}
        required_names += parts.required_names
    for key in _UNION_KEYWORDS:
        members = [
            _collect_parts(member, root, references) for member in _list_subschemas(node, key)
        ]
        for member in members:
            properties = {**member.properties, **properties}
        if members:
            first, *others = members
            required_names += [
                name
                for name in first.required_names
                if all(name in other.required_names for other in others)
            ]
    unique_names = dict.fromkeys(required_names)
    return _ObjectParts(properties, [name for name in unique_names if name in properties])


def _list_subschemas(node: JSON, key: str) -> list[JSON]:
    """Return the schemas of a keyword that holds a list."""
    value = node.get(key)
    return [each for each in value if is_object(each)] if is_list(value) else []


def resolve_reference(root: JSON, target: str) -> JSON:
    """Return the schema that a reference within `root` names; empty when there is none."""
    # A JSON pointer, such as `#/$defs/Point`: `~1` stands for a slash in a name, `~0` for a tilde.
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
        # OpenAI and Google refuse an array without a schema of its items;
        # an empty one allows everything.
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
    members = [
        {"type": node["type"], **member} if is_object(member) and "$ref" not in member else member
        for member in node[union]
    ]
    return {key: members if key == union else value for key, value in node.items() if key != "type"}


def _adapt_keyword(
    key: str, value: Any, refused_keywords: frozenset[str], dialect: SchemaDialect
) -> Any:
    if is_object(value):
        if key in _SCHEMA_MAP_KEYWORDS:
            return {
                name: _adapt_schema(member, refused_keywords, dialect)
                if is_object(member)
                else member
                for name, member in value.items()
            }
        # These are values, not schemas, even if they are objects.
        return (
            value
            if key in {"const", "default"}
            else _adapt_schema(value, refused_keywords, dialect)
        )
    if is_list(value) and key not in {"enum", "required"}:
        return [
            _adapt_schema(item, refused_keywords, dialect) if is_object(item) else item
            for item in value
        ]
    return value
