"""Converts the JSON Schema of a tool's parameters to the subset of OpenAPI that
Gemini's functions accept. Pure.
"""

from typing import Any, NamedTuple

from codeloop.kit.jsonc import is_list, is_object
from codeloop.model.wire.tool_schema import flatten_root, resolve_reference
from codeloop.schema.wire import JSON

COPIED_KEYWORDS = (
    "title",
    "description",
    "default",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
)
"""Keywords that are copied as they are."""
BOUND_KEYWORDS = ("minimum", "maximum")
SUPPORTED_FORMATS = frozenset({"enum", "date-time", "int32", "int64", "float", "double"})
MAX_DEPTH = 24
"""Levels of a schema that are sent; deeper ones become plain objects.
A recursive schema ends where it repeats.
"""


def convert_parameters(schema: JSON) -> JSON | None:
    """Return the schema of an object in Gemini's subset;
    None for one without properties, which is refused.

    References are resolved, unions become `anyOf` or `nullable`,
    a constant becomes an `enum` of one value.
    What the subset can't express is omitted; calls are still checked against it.
    """
    converted = _SchemaConverter(schema).convert(flatten_root(schema), (), 0)
    # The service refuses an object without properties: such a tool has no parameters.
    return converted if converted.get("properties") else None


class _Resolution(NamedTuple):
    schema: JSON
    references: tuple[str, ...]
    """All that were followed from the top of the document."""
    is_complete: bool
    """False: `schema` has a reference that is not followed,
    since it is recursive or leads out of the document.
    """


class _SchemaConverter:
    def __init__(self, root: JSON) -> None:
        self._root = root

    def convert(self, value: Any, references: tuple[str, ...], depth: int) -> JSON:
        """Return one schema; `references` are the references that lead to it."""
        node, references, is_complete = self._resolve(value, references)
        # The subset has no references, so a recursive schema has to end somewhere:
        # as an object of any shape.
        if not is_complete or depth > MAX_DEPTH:
            return {
                "type": "object",
                **({"description": node["description"]} if "description" in node else {}),
            }
        node = self._merge_all(node, references)
        branches = _list_branches(node)
        if branches is not None:
            return self._convert_union(node, branches, references, depth)
        return self._convert_single(node, references, depth)

    def _resolve(self, value: Any, references: tuple[str, ...]) -> _Resolution:
        """Follow the references at the top of a schema; the keywords next to them are kept."""
        node: JSON = value if is_object(value) else {}
        while isinstance(target := node.get("$ref"), str):
            siblings = {key: value for key, value in node.items() if key != "$ref"}
            if target in references or not target.startswith("#"):
                return _Resolution(siblings, references, is_complete=False)
            references = (*references, target)
            node = {**resolve_reference(self._root, target), **siblings}
        return _Resolution(node, references, is_complete=True)

    def _merge_all(self, node: JSON, references: tuple[str, ...]) -> JSON:
        """Merge the members of `allOf` into a schema."""
        members = node.get("allOf")
        if not is_list(members):
            return node
        merged: JSON = {key: value for key, value in node.items() if key != "allOf"}
        for member in members:
            inner = self._merge_all(self._resolve(member, references).schema, references)
            properties = {**inner.get("properties", {}), **merged.get("properties", {})}
            required = [*merged.get("required", []), *inner.get("required", [])]
            merged = {**inner, **merged}
            if properties:
                merged["properties"] = properties
            if required:
                merged["required"] = list(dict.fromkeys(required))
        return merged

    def _convert_union(
        self, node: JSON, branches: list[Any], references: tuple[str, ...], depth: int
    ) -> JSON:
        """Return a union. Next to `anyOf` the subset allows a description only."""
        members = [self._resolve(branch, references).schema for branch in branches]
        non_null = [
            branch for branch, member in zip(branches, members, strict=True) if not _is_null(member)
        ]
        nullable: JSON = {"nullable": True} if len(non_null) < len(branches) else {}
        notes = {
            key: node[key] for key in ("title", "description") if isinstance(node.get(key), str)
        }
        # How some generators write an enum: a union of constants.
        values = [member["const"] for member in members if "const" in member]
        if len(values) == len(branches) and all(
            isinstance(value, str) and value for value in values
        ):
            return {"type": "string", "enum": list(dict.fromkeys(values)), **notes}
        options = [self.convert(branch, references, depth + 1) for branch in non_null]
        distinct = [option for index, option in enumerate(options) if option not in options[:index]]
        if not distinct:
            return {"type": "string", **notes, **nullable}
        # `int | None` and the like: not a union for Gemini, but a nullable type.
        if len(distinct) == 1:
            return {**distinct[0], **notes, **nullable}
        return {"anyOf": distinct, **notes, **nullable}

    def _convert_single(self, node: JSON, references: tuple[str, ...], depth: int) -> JSON:
        kind = _infer_type(node)
        converted: JSON = {"type": kind}
        converted.update({key: node[key] for key in COPIED_KEYWORDS if key in node})
        if node.get("nullable") is True:
            converted["nullable"] = True
        if isinstance(node.get("format"), str) and node["format"] in SUPPORTED_FORMATS:
            converted["format"] = node["format"]
        match kind:
            case "string":
                _add_enum(converted, node)
            case "integer" | "number":
                _add_bounds(converted, node, is_integer=kind == "integer")
                _add_enum(converted, node)
            case "array":
                items = node.get("items", node.get("prefixItems"))
                converted["items"] = self.convert(
                    {"anyOf": items} if is_list(items) else items, references, depth + 1
                )
            case "object":
                self._add_properties(converted, node, references, depth)
            case _:
                pass
        return converted

    def _add_properties(
        self, converted: JSON, node: JSON, references: tuple[str, ...], depth: int
    ) -> None:
        properties = node.get("properties")
        if not is_object(properties) or not properties:
            return
        converted["properties"] = {
            name: self.convert(each, references, depth + 1) for name, each in properties.items()
        }
        required = [name for name in node.get("required") or () if name in properties]
        if required:
            converted["required"] = required


def _list_branches(node: JSON) -> list[Any] | None:
    """Return the members of a union, as `anyOf`, `oneOf` or a list of types;
    None: the schema is not a union.
    """
    for key in ("anyOf", "oneOf"):
        if is_list(members := node.get(key)) and members:
            shared = {"type": node["type"]} if isinstance(node.get("type"), str) else {}
            return [{**shared, **member} if is_object(member) else member for member in members]
    kinds = node.get("type")
    if not is_list(kinds) or not kinds:
        return None
    common = {
        key: value for key, value in node.items() if key not in {"type", "title", "description"}
    }
    return [{**common, "type": kind} for kind in kinds]


def _infer_type(node: JSON) -> str:
    """Return the type of a schema, or the one that its other keywords mean."""
    types = node.get("type")
    if isinstance(types, str):
        return types.lower()
    if "properties" in node or "additionalProperties" in node:
        return "object"
    if "items" in node or "prefixItems" in node:
        return "array"
    # By its constant, or by the first value of its enum.
    value: Any = node.get("const", (node.get("enum") or [None])[0])
    names = {
        "bool": "boolean",
        "int": "integer",
        "float": "number",
        "dict": "object",
        "list": "array",
    }
    return names.get(type(value).__name__, "string")


def _is_null(node: JSON) -> bool:
    return node.get("type") == "null" or ("const" in node and node["const"] is None)


def _add_enum(converted: JSON, node: JSON) -> None:
    """Add the allowed values: as `enum` if they are texts, which is all that it can list;
    else in the description.
    """
    values = [node["const"]] if "const" in node else node.get("enum")
    if not is_list(values):
        return
    if converted["type"] == "string":
        texts = [value for value in values if isinstance(value, str) and value]
        if texts:
            converted["enum"] = texts
        return
    note = f"One of: {', '.join(str(value) for value in values)}."
    before = converted.get("description")
    converted["description"] = f"{before} {note}" if before else note


def _add_bounds(converted: JSON, node: JSON, *, is_integer: bool) -> None:
    for key in BOUND_KEYWORDS:
        if isinstance(node.get(key), (int, float)):
            converted[key] = node[key]
    # The subset has no exclusive bounds; for integers the next number means the same.
    for key, limit, step in (
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ):
        if is_integer and isinstance(node.get(key), int) and limit not in converted:
            converted[limit] = node[key] + step
