"""Request fields that ask a service for an answer of a JSON Schema, by its own format or by a forced tool call. Pure.

Services compile a schema to a grammar and refuse one that they can't compile. `agent/structured` decides what to use,
and checks the answer.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.wildcard import matches
from codeloop.model.catalog.services import find_protocol
from codeloop.model.chat import ModelInfo
from codeloop.model.quirks import AnswerFormat, Quirks
from codeloop.schema.part import STRUCTURED_OUTPUT_TOOL as NAME
from codeloop.schema.wire import JSON

WRAPPER_PROPERTY = "result"
"""The property of the object that wraps an answer whose schema is not that of an object, such as a list."""


class AnswerGrammar(Struct, frozen=True):
    """The part of JSON Schema that a service can enforce by a grammar."""

    keywords: frozenset[str]
    formats: frozenset[str]
    max_optional: int
    """How many properties of all objects together may be optional."""
    allows_recursion: bool
    max_depth: int = 10
    """Levels of nesting."""
    max_enum_values: int = 500
    """Values of all `enum`s together."""


_NAMING_KEYWORDS = frozenset({"$defs", "definitions", "title", "description"})
_COMMON_KEYWORDS = _NAMING_KEYWORDS | {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "const",
    "$ref",
}
_ANNOTATION_KEYWORDS = frozenset({"$schema", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"})
"""Annotations without constraints; not sent."""
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_CONSTRAINT_KEYWORDS = {
    "pattern",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "minItems",
    "maxItems",
}
_GEMINI_GRAMMAR = AnswerGrammar(
    _COMMON_KEYWORDS | {"format", "minimum", "maximum", "minItems", "maxItems"},
    frozenset({"date-time", "date", "time"}),
    max_optional=20,
    allows_recursion=False,
)
# A schema beyond what a service supports gets the whole request refused.
GRAMMARS: dict[AnswerFormat, AnswerGrammar] = {
    # OpenAI, Azure, xAI: every property is required, and objects may contain themselves.
    "response_format": AnswerGrammar(
        _COMMON_KEYWORDS | _CONSTRAINT_KEYWORDS | {"format"}, _FORMATS, max_optional=0, allows_recursion=True
    ),
    # Anthropic.
    "output_config": AnswerGrammar(
        _COMMON_KEYWORDS | {"format"}, _FORMATS | {"uri"}, max_optional=20, allows_recursion=False
    ),
    "generation_config": _GEMINI_GRAMMAR,
    "interaction_format": _GEMINI_GRAMMAR,
}
_NON_ROOT_KEYWORDS = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "$ref"})
"""Keywords that services refuse at the top of a tool's parameters, or of an answer's format."""


class AnswerShape(Struct, frozen=True):
    """A schema of an object, the only kind that services accept. `is_wrapped`: its property `result` is the answer."""

    schema: JSON
    is_wrapped: bool

    def unwrap(self, data: Any) -> Any:
        """Return the answer without the wrapper that the shape added."""
        has_wrapper = self.is_wrapped and is_object(data) and data.keys() == {WRAPPER_PROPERTY}
        return data[WRAPPER_PROPERTY] if has_wrapper else data


def make_answer_shape(schema: JSON) -> AnswerShape:
    """Return a schema as that of an object, wrapped if it is not one."""
    root = _resolve_root(schema)
    kind = root.get("type", "object" if "properties" in root else None)
    if kind == "object" and not _NON_ROOT_KEYWORDS & root.keys():
        return AnswerShape({**root, "type": "object"}, is_wrapped=False)
    moved_keys = ("$defs", "definitions", "$schema", "$id")
    inner = {key: value for key, value in root.items() if key not in moved_keys}
    definitions = {key: root[key] for key in moved_keys[:2] if key in root}
    wrapper = {
        "type": "object",
        "properties": {WRAPPER_PROPERTY: inner},
        "required": [WRAPPER_PROPERTY],
        "additionalProperties": False,
    }
    return AnswerShape(_move_references({**wrapper, **definitions}), is_wrapped=True)


def make_format_fields(info: ModelInfo, quirks: Quirks, shape: AnswerShape) -> JSON | None:
    """Return the body fields with the schema of the answer; None: the service can't enforce this schema.

    `response_format` also takes a schema that the service can't enforce, as advice (`strict` is false).
    """
    name = info.api_id or info.id
    form = quirks.answer_format
    if not form or any(matches(name, pattern) for pattern in quirks.models_without_answer_format):
        return None
    data = _fit_schema(shape.schema, GRAMMARS[form])
    match form:
        case "response_format":
            format_fields = {"name": NAME, "schema": shape.schema if data is None else data, "strict": data is not None}
            return {"response_format": {"type": "json_schema", "json_schema": format_fields}}
        case "output_config":
            return None if data is None else {"output_config": {"format": {"type": "json_schema", "schema": data}}}
        case "generation_config":
            if data is None:
                return None
            return {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": data}}
        case "interaction_format":
            format_fields = {"type": "text", "mime_type": "application/json", "schema": data}
            return None if data is None else {"response_format": format_fields}


def make_forced_call_fields(info: ModelInfo, quirks: Quirks, options: JSON) -> JSON:
    """Return the body fields that force a tool call; empty where the service does not support that."""
    if not quirks.supports_forced_call or "tool_choice" in options or "toolChoice" in options:
        return {}
    thinking: Any = options.get("thinking")
    thinks = is_object(thinking) and thinking.get("type") in {"enabled", "adaptive"}
    match find_protocol(info):
        case "anthropic-messages" | "anthropic-vertex":
            # The service refuses a forced call together with thinking.
            return {} if thinks else {"tool_choice": {"type": "any"}}
        case "google-generate-content":
            return {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}
        case "google-interactions":
            return {"generation_config": {"tool_choice": "any"}}
        case "bedrock-converse":
            # Other models at Bedrock refuse `toolChoice`.
            takes = re.search(r"claude|nova|mistral-large", info.api_id or info.id)
            return {"toolConfig": {"toolChoice": {"any": {}}}} if takes and not thinks else {}
        case _:
            return {"tool_choice": "required"}


def _resolve_root(schema: JSON) -> JSON:
    """Replace a `$ref` at the top of a schema by what it refers to."""
    seen: set[str] = set()
    while isinstance(target := schema.get("$ref"), str) and target not in seen:
        seen.add(target)
        _, _, name = target.removeprefix("#/").partition("/")
        section = target.removeprefix("#/").partition("/")[0]
        definition = schema.get(section, {}).get(name) if section in {"$defs", "definitions"} else None
        if not is_object(definition):
            break
        schema = {**{key: value for key, value in schema.items() if key != "$ref"}, **definition}
    return schema


def _move_references(value: Any) -> Any:
    """Adapt references to the schema's own top, which has moved into `result`."""
    if is_list(value):
        return [_move_references(item) for item in value]
    if not is_object(value):
        return value
    rewritten = {key: _move_references(item) for key, item in value.items()}
    target = value.get("$ref")
    if isinstance(target, str) and target.startswith("#") and not target.startswith(("#/$defs/", "#/definitions/")):
        rewritten["$ref"] = f"#/properties/{WRAPPER_PROPERTY}{target[1:]}"
    return rewritten


def _fit_schema(schema: JSON, grammar: AnswerGrammar) -> JSON | None:
    """Close all objects of a schema, if the grammar can express it; None: it can't.

    Whatever the result allows, the schema allows.
    """
    if not grammar.allows_recursion and _is_recursive(schema):
        return None
    try:
        fitting = _SchemaFitter(grammar)
        data = fitting.fit(schema, 1)
    except _GrammarMismatch:
        return None
    return data if fitting.optional <= grammar.max_optional and fitting.values <= grammar.max_enum_values else None


class _GrammarMismatch(Exception):
    pass


class _SchemaFitter:
    def __init__(self, grammar: AnswerGrammar) -> None:
        self.optional = 0
        self.values = 0
        self._grammar = grammar

    def fit(self, schema: Any, depth: int) -> JSON:
        if not is_object(schema) or depth > self._grammar.max_depth:
            raise _GrammarMismatch
        node = {key: value for key, value in schema.items() if key not in _ANNOTATION_KEYWORDS}
        if not node.keys() <= self._grammar.keywords or node.get("format", "date") not in self._grammar.formats:
            raise _GrammarMismatch
        converted_node = {**node}
        for key in ("$defs", "definitions"):
            if key in node:
                converted_node[key] = {name: self.fit(each, depth) for name, each in node[key].items()}
        if "$ref" in node:
            # A grammar can't express constraints next to a reference.
            if node.keys() & _COMMON_KEYWORDS - _NAMING_KEYWORDS - {"$ref"}:
                raise _GrammarMismatch
            return {key: value for key, value in converted_node.items() if key not in {"title", "description"}}
        if "anyOf" in node:
            converted_node["anyOf"] = [self.fit(each, depth + 1) for each in node["anyOf"]]
        if (values := node.get("enum", [node["const"]] if "const" in node else None)) is not None:
            self.values += len(values)
            converted_node.setdefault("type", _infer_type(values))
        if "properties" in node:
            converted_node = self._fit_object(converted_node, depth)
        kinds = converted_node.get("type", ())
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        # The grammars need to know the properties of every object, and the items of every array.
        if ("object" in kinds) != ("properties" in node) or not (kinds or "anyOf" in node):
            raise _GrammarMismatch
        if ("array" in kinds) != ("items" in node):
            raise _GrammarMismatch
        if "items" in node:
            converted_node["items"] = self.fit(node["items"], depth + 1)
        return converted_node

    def _fit_object(self, node: JSON, depth: int) -> JSON:
        properties, required = node["properties"], node.get("required", [])
        if node.get("additionalProperties", False) is not False or not set(required) <= properties.keys():
            raise _GrammarMismatch
        self.optional += len(properties) - len(set(required))
        inner = {name: self.fit(each, depth + 1) for name, each in properties.items()}
        return {"type": "object", **node, "properties": inner, "required": required, "additionalProperties": False}


def _infer_type(values: list[Any]) -> str:
    names = {"str": "string", "bool": "boolean", "int": "integer", "float": "number", "NoneType": "null"}
    kinds = {names.get(type(value).__name__, "") for value in values}
    if len(kinds) != 1 or "" in kinds:
        raise _GrammarMismatch
    return kinds.pop()


def _is_recursive(schema: JSON) -> bool:
    """Return whether some part of a schema refers to something that contains it."""
    definitions = {
        f"#/{key}/{name}": each for key in ("$defs", "definitions") for name, each in schema.get(key, {}).items()
    }
    links = {name: set(_iterate_targets(each)) for name, each in definitions.items()}
    if any(target not in links for target in _iterate_targets(schema)):
        # A reference to no definition can only point into the schema that contains it.
        return True
    for start, first in links.items():
        seen, waiting = set[str](), [*first]
        while waiting:
            if (target := waiting.pop()) == start:
                return True
            if target not in seen:
                seen.add(target)
                waiting += links[target]
    return False


def _iterate_targets(value: Any) -> Iterator[str]:
    if is_object(value):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target
    for item in value.values() if is_object(value) else value if is_list(value) else ():
        yield from _iterate_targets(item)
