"""Finds the value in a configuration that does not fit its type,
so that errors can name its place in the file.
"""

import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from codeloop.config.sources import Origin
from codeloop.kit.jsonc import KeyPath, get_type_name, is_list, is_object

_MISSING_FIELD = r"missing required field `(\w+)`"
_BOUND = r"Expected `\w+` ([<>]=? \S+)"
_TYPE_NAMES = {
    bool: "true or false",
    int: "integer",
    float: "number",
    str: "string",
    list: "list",
    dict: "object",
}


def find_type_error(value: Any, kind: Any, keys: KeyPath = ()) -> tuple[KeyPath, str]:
    """Return the path of the innermost value that does not fit its type,
    and what was expected there.

    `value` must not fit `kind`.
    """
    for key, inner, inner_kind in _list_inner_values(value, kind):
        try:
            msgspec.convert(inner, inner_kind)
        except msgspec.ValidationError:
            return find_type_error(inner, inner_kind, (*keys, key))
    return keys, _describe_type_error(value, kind)


def _list_inner_values(value: Any, kind: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Yield the key or index of each value in an object or a list, the value,
    and the type that it must have.
    """
    for member in _list_union_members(kind):
        if is_object(value) and isinstance(member, type) and issubclass(member, msgspec.Struct):
            for each in msgspec.structs.fields(member):
                if each.encode_name in value:
                    yield each.encode_name, value[each.encode_name], each.type
        elif is_object(value) and get_origin(member) is dict:
            for key, inner in value.items():
                yield key, inner, get_args(member)[1]
        elif is_list(value) and get_origin(member) is list:
            for index, inner in enumerate(value):
                yield index, inner, get_args(member)[0]


def _list_union_members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself, without the bounds that `Annotated` adds."""
    members = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    return tuple(
        get_args(member)[0] if get_origin(member) is Annotated else member for member in members
    )


def _describe_type_error(value: Any, kind: Any) -> str:
    message = ""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message = str(error)
    if missing := re.search(_MISSING_FIELD, message):
        return f"the key {missing[1]} is missing"
    names = [
        name
        for member in _list_union_members(kind)
        if member is not type(None)
        for name in _name_choices(member)
    ]
    expected = " or ".join(dict.fromkeys(names))
    if bound := re.match(_BOUND, message):
        return f"expected {expected} {bound[1]}, got {value}"
    text = ascii(value)[:60] if isinstance(value, str) else get_type_name(value)
    return f"expected {expected}, got {text if _is_choice(kind) else get_type_name(value)}"


def _is_choice(kind: Any) -> bool:
    return any(get_origin(member) is Literal for member in _list_union_members(kind))


def _name_choices(member: Any) -> list[str]:
    if get_origin(member) is Literal:
        return [f'"{choice}"' for choice in get_args(member)]
    return [_TYPE_NAMES.get(get_origin(member) or member, "object")]


def locate_value(origins: Mapping[KeyPath, Origin], keys: KeyPath) -> str:
    """Return the file position of a value; if only values around or inside it were set,
    the position of one of them.
    """
    for size in range(len(keys), 0, -1):
        origin = origins.get(keys[:size])
        if origin is not None:
            return origin.layer.format_location((*origin.keys, *keys[size:]))
    inner = next((inner_keys for inner_keys in origins if inner_keys[: len(keys)] == keys), None)
    if inner is None:
        return "the configuration"
    origin = origins[inner]
    return origin.layer.format_location(origin.keys[: len(origin.keys) - len(inner) + len(keys)])
