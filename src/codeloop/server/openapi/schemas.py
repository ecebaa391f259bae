"""The JSON schemas of the OpenAPI document: made from the structs,
under the contract's names where it has some.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from codeloop.schema.api.providers import ApiAuth, OAuth, WellKnownAuth
from codeloop.schema.api.session_inputs import PartInput
from codeloop.schema.errors import MessageError
from codeloop.schema.event import Event
from codeloop.schema.live_events import Status, TuiEvent
from codeloop.schema.message import Message
from codeloop.schema.part import FilePartSource, Part, ToolState

Schema = dict[str, Any]

_COMPONENT_PREFIX = "#/components/schemas/"

_PUBLIC_NAMES = {"PathInfo": "Path", "ProjectInfo": "Project", "ProviderDetails": "Provider"}
"""Our names of structs -> the contract's, where another class of ours has that name already."""

_UNIONS: dict[str, Any] = {
    "Auth": OAuth | ApiAuth | WellKnownAuth,
    "Event": Event,
    "FilePartSource": FilePartSource,
    "Message": Message,
    "MessageError": MessageError,
    "Part": Part,
    "PartInput": PartInput,
    "SessionStatus": Status,
    "ToolState": ToolState,
    "TuiEvent": TuiEvent,
}
"""Unions that are components of the document under these names."""


class DocumentSchemas(msgspec.Struct, frozen=True):
    """The schemas of answers, in the order of their types, and all components by name,
    with those of requests.
    """

    answers: list[Schema]
    components: dict[str, Schema]


def make_schemas(takes: Sequence[Any], gives: Sequence[Any]) -> DocumentSchemas:
    """Return the schemas of what operations take and give.

    A field that may be left out of a request may also be null there, while an answer leaves it out.
    So only the schemas of requests, and the components that they refer to, allow null.
    """
    types = [*takes, *gives, *_UNIONS.values()]
    schemas, definitions = msgspec.json.schema_components(types, ref_template="{name}")
    unions = dict(zip(_UNIONS, schemas[-len(_UNIONS) :], strict=True))
    components = {**definitions, **unions}
    reachable = _find_reachable(schemas[: len(takes)], components)
    # msgspec writes a union out in full instead of referring to it,
    # so requests reach one by its members.
    reachable |= {name for name, schema in unions.items() if _list_members(schema) <= reachable}
    normalizer = _SchemaNormalizer(
        names={name: _choose_public_name(name, schema) for name, schema in components.items()},
        unions={_list_members(schema): name for name, schema in unions.items()},
    )
    return DocumentSchemas(
        answers=[
            normalizer.convert(schema, allows_null=False)
            for schema in schemas[len(takes) : -len(_UNIONS)]
        ],
        components={
            normalizer.names[name]: normalizer.convert_inner(
                components[name], allows_null=name in reachable
            )
            for name in sorted(components)
        },
    )


def make_component_reference(name: str) -> Schema:
    """Return a reference to a component by the name that it has in the document."""
    return {"$ref": _COMPONENT_PREFIX + name}


class _SchemaNormalizer(msgspec.Struct, frozen=True):
    """Puts schemas into the document's form.

    `names`: msgspec's name of a component -> the document's.
    `unions`: the members of a union -> its name.
    """

    names: dict[str, str]
    unions: dict[frozenset[str], str]

    def convert(self, node: Schema, *, allows_null: bool) -> Schema:
        """Return a schema with the document's names, and without null unless `allows_null`."""
        match node:
            case {"$ref": str(name)}:
                return make_component_reference(self.names[name])
            case {"anyOf": [only, {"type": "null"}]} if not allows_null:
                return self.convert(only, allows_null=allows_null)
            case {"discriminator": _} if _list_members(node) in self.unions:
                return make_component_reference(self.unions[_list_members(node)])
            case _:
                return self.convert_inner(node, allows_null=allows_null)

    def convert_inner(self, node: Schema, *, allows_null: bool) -> Schema:
        """Return a schema with the schemas within it converted,
        not replaced itself by a reference.
        """
        result = {
            key: value for key, value in node.items() if key != "title" and value not in (None, [])
        }
        for key, value in result.items():
            match key:
                case "properties":
                    result[key] = {
                        name: self.convert(inner, allows_null=allows_null)
                        for name, inner in value.items()
                    }
                case "anyOf":
                    result[key] = [self.convert(inner, allows_null=allows_null) for inner in value]
                case "items" | "additionalProperties":
                    result[key] = self.convert(value, allows_null=allows_null)
                case "discriminator":
                    mapping = {
                        tag: _COMPONENT_PREFIX + self.names[name]
                        for tag, name in value["mapping"].items()
                    }
                    result[key] = {**value, "mapping": mapping}
                case "enum" if all(isinstance(choice, str) for choice in value):
                    result = {"type": "string", **result}
                case "enum" if all(isinstance(choice, bool) for choice in value):
                    # Programs that generate clients drop a schema without a type.
                    result = {"type": "boolean", **result}
                case _:
                    pass
        return result


def _choose_public_name(name: str, schema: Schema) -> str:
    """Return the document's name of a struct; an event is named after its type."""
    # msgspec qualifies names that two modules share.
    # Where such structs are equal, they become one component.
    base = name.rpartition(".")[2]
    fields = schema.get("properties", {})
    if "type" in fields and "properties" in fields:
        return "Event" + "".join(word.capitalize() for word in fields["type"]["enum"][0].split("."))
    return _PUBLIC_NAMES.get(base, base)


def _list_members(schema: Schema) -> frozenset[str]:
    return frozenset(option["$ref"] for option in schema["anyOf"])


def _list_references(node: Any) -> list[str]:
    """Return the names that a schema refers to, at any depth."""
    # A search in the encoded schema is shorter than a walk through nested objects.
    return re.findall(r'"\$ref":"([^"]+)"', msgspec.json.encode(node).decode())


def _find_reachable(schemas: Iterable[Schema], components: dict[str, Schema]) -> set[str]:
    """Return the names of the components that schemas refer to, directly or not."""
    reachable: set[str] = set()
    waiting = _list_references(list(schemas))
    while waiting:
        name = waiting.pop()
        if name not in reachable:
            reachable.add(name)
            waiting += _list_references(components[name])
    return reachable
