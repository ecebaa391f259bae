"""Request fields that ask a service for an answer of a JSON Schema,
by its own format or by a forced tool call. Pure.

Services compile a schema to a grammar and refuse one that they can't compile. `agent/structured`
decides what to use, and checks the answer.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.wildcard import matches
from codeloop.model.catalog.services import find_protocol
from codeloop.model.chat import ModelInfo
from codeloop.model.quirks import AnswerFormat, Quirks
from codeloop.schema.part import STRUCTURED_OUTPUT_TOOL
from codeloop.schema.wire import JSON

WRAPPER_PROPERTY = "result"
"""The property of the object that wraps an answer whose schema is not that of an object,
such as a list.
"""


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
_ANNOTATION_KEYWORDS = frozenset(
    {"$schema", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"}
)
"""Annotations without constraints; not sent."""
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
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
"""Constraints that OpenAI's format of an answer supports;
the schemas of its tools are sent without them (`quirks`).
"""
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
        _COMMON_KEYWORDS | _CONSTRAINT_KEYWORDS | {"format"},
        _FORMATS,
        max_optional=0,
        allows_recursion=True,
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
    """A schema of an object, the only kind that services accept.
    `is_wrapped`: its property `result` is the answer.
    """

    schema: JSON
    is_wrapped: bool

    def unwrap(self, answer: Any) -> Any:
        """Return an answer without the wrapper that the shape added."""
        has_wrapper = self.is_wrapped and is_object(answer) and answer.keys() == {WRAPPER_PROPERTY}
        return answer[WRAPPER_PROPERTY] if has_wrapper else answer


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
    """Return the body fields with the schema of the answer;
    None: the service can't enforce this schema.

    `response_format` also takes a schema that the service can't enforce,
    as advice (`strict` is false).
    """
    name, answer_format = info.api_id or info.id, quirks.answer_format
    if not answer_format or any(
        matches(name, pattern) for pattern in quirks.models_without_answer_format
    ):
        return None
    schema = _fit_schema(shape.schema, GRAMMARS[answer_format])
    if answer_format == "response_format":
        json_schema = {
            "name": STRUCTURED_OUTPUT_TOOL,
            "schema": shape.schema if schema is None else schema,
            "strict": schema is not None,
        }
        return {"response_format": {"type": "json_schema", "json_schema": json_schema}}
    if schema is None:
        return None
    match answer_format:
        case "output_config":
            return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        case "generation_config":
            return {
                "generationConfig": {
                    "responseMimeType": "application/json",
                    "responseJsonSchema": schema,
                }
            }
        case "interaction_format":
            return {
                "response_format": {
                    "type": "text",
                    "mime_type": "application/json",
                    "schema": schema,
                }
            }


def make_forced_call_fields(info: ModelInfo, quirks: Quirks, options: JSON) -> JSON:
    """Return the body fields that force a tool call;
    empty where the service does not support that.
    """
    if not quirks.supports_forced_call or "tool_choice" in options or "toolChoice" in options:
        return {}
    thinking: Any = options.get("thinking")
    is_thinking = is_object(thinking) and thinking.get("type") in {"enabled", "adaptive"}
    match find_protocol(info):
        case "anthropic-messages" | "anthropic-vertex":
            # The service refuses a forced call together with thinking.
            return {} if is_thinking else {"tool_choice": {"type": "any"}}
        case "google-generate-content":
            return {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}
        case "google-interactions":
            return {"generation_config": {"tool_choice": "any"}}
        case "bedrock-converse":
            # Other models at Bedrock refuse `toolChoice`.
            accepts_choice = re.search(r"claude|nova|mistral-large", info.api_id or info.id)
            return (
                {"toolConfig": {"toolChoice": {"any": {}}}}
                if accepts_choice and not is_thinking
                else {}
            )
        case _:
            return {"tool_choice": "required"}


def _resolve_root(schema: JSON) -> JSON:
    """Replace a `$ref` at the top of a schema by what it refers to."""
    seen: set[str] = set()
    while isinstance(target := schema.get("$ref"), str) and target not in seen:
        seen.add(target)
        # Such as `#/$defs/Point`.
        section, _, name = target.removeprefix("#/").partition("/")
        definition = (
            schema.get(section, {}).get(name) if section in {"$defs", "definitions"} else None
        )
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
    if (
        isinstance(target, str)
        and target.startswith("#")
        and not target.startswith(("#/$defs/", "#/definitions/"))
    ):
        rewritten["$ref"] = f"#/properties/{WRAPPER_PROPERTY}{target[1:]}"
    return rewritten


def _fit_schema(schema: JSON, grammar: AnswerGrammar) -> JSON | None:
    """Return a schema that the grammar can express, with all objects closed;
    None: the grammar can't express it.

    Whatever the result allows, the given schema allows.
    """
    if not grammar.allows_recursion and _is_recursive(schema):
        return None
    fitter = _SchemaFitter(grammar)
    try:
        fitting_schema = fitter.fit(schema, depth=1)
    except _GrammarMismatch:
        return None
    if (
        fitter.optional_count > grammar.max_optional
        or fitter.enum_value_count > grammar.max_enum_values
    ):
        return None
    return fitting_schema


class _GrammarMismatch(Exception):
    """The grammar can't express the schema."""


class _SchemaFitter:
    """Fits one schema to a grammar, and counts its optional properties and
    the values of its enums.
    """

    def __init__(self, grammar: AnswerGrammar) -> None:
        self.optional_count = 0
        self.enum_value_count = 0
        self._grammar = grammar

    def fit(self, schema: Any, depth: int) -> JSON:
        """Return a schema, or a part of one, as the grammar wants it. Raises _GrammarMismatch."""
        if not is_object(schema) or depth > self._grammar.max_depth:
            raise _GrammarMismatch
        node = {key: value for key, value in schema.items() if key not in _ANNOTATION_KEYWORDS}
        # `date` is a format that every grammar has, for a schema without a format.
        if (
            not node.keys() <= self._grammar.keywords
            or node.get("format", "date") not in self._grammar.formats
        ):
            raise _GrammarMismatch
        fitted = {**node}
        for key in ("$defs", "definitions"):
            if key in node:
                fitted[key] = {
                    name: self.fit(definition, depth) for name, definition in node[key].items()
                }
        if "$ref" in node:
            # A grammar can't express constraints next to a reference.
            if node.keys() & _COMMON_KEYWORDS - _NAMING_KEYWORDS - {"$ref"}:
                raise _GrammarMismatch
            return {
                key: value for key, value in fitted.items() if key not in {"title", "description"}
            }
        if "anyOf" in node:
            fitted["anyOf"] = [self.fit(member, depth + 1) for member in node["anyOf"]]
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if values is not None:
            self.enum_value_count += len(values)
            fitted.setdefault("type", _infer_type(values))
        if "properties" in node:
            fitted = self._fit_object(fitted, depth)
        types = fitted.get("type", ())
        types = {types} if isinstance(types, str) else set(types)
        # The grammars need to know the properties of every object, and the items of every array.
        if ("object" in types) != ("properties" in node) or not (types or "anyOf" in node):
            raise _GrammarMismatch
        if ("array" in types) != ("items" in node):
            raise _GrammarMismatch
        if "items" in node:
            fitted["items"] = self.fit(node["items"], depth + 1)
        return fitted

    def _fit_object(self, node: JSON, depth: int) -> JSON:
        properties, required = node["properties"], node.get("required", [])
        if (
            node.get("additionalProperties", False) is not False
            or not set(required) <= properties.keys()
        ):
            raise _GrammarMismatch
        self.optional_count += len(properties) - len(set(required))
        inner = {name: self.fit(member, depth + 1) for name, member in properties.items()}
        return {
            "type": "object",
            **node,
            "properties": inner,
            "required": required,
            "additionalProperties": False,
        }


def _infer_type(values: list[Any]) -> str:
    """Return the one type of all values, in the names of JSON Schema.
    Raises _GrammarMismatch: they have several.
    """
    names = {
        "str": "string",
        "bool": "boolean",
        "int": "integer",
        "float": "number",
        "NoneType": "null",
    }
    types = {names.get(type(value).__name__, "") for value in values}
    if len(types) != 1 or "" in types:
        raise _GrammarMismatch
    return types.pop()


def _is_recursive(schema: JSON) -> bool:
    """Return whether some part of a schema refers to something that contains it."""
    definitions = {
        f"#/{key}/{name}": definition
        for key in ("$defs", "definitions")
        for name, definition in schema.get(key, {}).items()
    }
    targets_by_definition = {
        name: set(_iterate_targets(definition)) for name, definition in definitions.items()
    }
    # A reference to no definition can only point into the schema that contains it.
    if any(target not in targets_by_definition for target in _iterate_targets(schema)):
        return True
    for definition, first_targets in targets_by_definition.items():
        seen, waiting = set[str](), [*first_targets]
        while waiting:
            target = waiting.pop()
            if target == definition:
                return True
            if target not in seen:
                seen.add(target)
                waiting += targets_by_definition[target]
    return False


def _iterate_targets(value: Any) -> Iterator[str]:
    """Yield the targets of all references in a schema."""
    members: Iterable[Any] = ()
    if is_object(value):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target
        members = value.values()
    elif is_list(value):
        members = value
    for member in members:
        yield from _iterate_targets(member)
