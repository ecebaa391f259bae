"""The base Struct of everything on the wire, on disk and in events."""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Annotated, Any, TypeVar, cast, dataclass_transform, overload

import msgspec

from codeloop.kit.text.undecodable import escape_undecodable

MAX_JSON_DEPTH = 256
"""The most levels of arrays and objects. Real documents have some twenty."""

# Strings, and all that is neither a string nor a bracket.
_REST = rb'(?s)"(?:[^"\\]++|\\.)*+"|[^][{}"]++'
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord('"'): 0}


def check_json_depth(data: bytes | bytearray | str) -> None:
    """Raise RecursionError for JSON that is nested more than MAX_JSON_DEPTH levels deep.
    It need not be valid.
    """
    # Most documents are proved to be shallow by their length or by counting,
    # in a tenth of a microsecond.
    if len(data) <= MAX_JSON_DEPTH:
        return
    text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if text.count(b"[") + text.count(b"{") <= MAX_JSON_DEPTH:
        return
    if max(accumulate(map(_STEPS.__getitem__, re.sub(_REST, b"", text)))) > MAX_JSON_DEPTH:
        raise RecursionError(f"JSON that is nested more than {MAX_JSON_DEPTH} levels deep")


T = TypeVar("T")

_encode = msgspec.json.Encoder().encode

replace = msgspec.structs.replace
"""Returns a copy of a record with some fields changed."""

JSON = dict[str, Any]
"""A JSON object whose shape is not fixed here, such as a tool's input or metadata."""

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for data that is not of the expected shape, not UTF-8,
or nested too deeply.
"""


def bound_depth(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a decoder of JSON that first raises RecursionError for what is nested too
    deeply (`MAX_JSON_DEPTH`).
    """

    def decode_bounded(data: bytes) -> T:
        check_json_depth(data)
        return decode(data)

    return decode_bounded


def encode_json(value: Any) -> bytes:
    """Encode a value as JSON. Bytes of names that are not UTF-8 are written out,
    by their numbers.
    """
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # Such names are rare, so they are only looked for after a failure.
        return _encode(_escape_strings(msgspec.to_builtins(value)))


def _escape_strings(value: Any) -> Any:
    match value:
        case str():
            return escape_undecodable(value)
        case dict():
            entries = cast("dict[str, Any]", value).items()
            return {escape_undecodable(name): _escape_strings(each) for name, each in entries}
        case list() | tuple():
            return [_escape_strings(each) for each in cast("Sequence[Any]", value)]
        case _:
            return value


@overload
def decode_json(data: bytes | bytearray | str) -> Any: ...


@overload
def decode_json(data: bytes | bytearray | str, struct_type: type[T]) -> T: ...


def decode_json(data: bytes | bytearray | str, struct_type: Any = Any) -> Any:
    """Decode JSON that others wrote. Raises one of DECODE_ERRORS,
    RecursionError beyond MAX_JSON_DEPTH.
    """
    check_json_depth(data)
    return msgspec.json.decode(data, type=struct_type)


# Clients in JavaScript hold numbers as floats, which are exact for integers up to here.
_MAX_INTEGER = 2**53 - 1

Count = Annotated[int, msgspec.Meta(ge=1, le=_MAX_INTEGER)]
"""A number of at least 1: how many of something, at most how many, ms."""

Natural = Annotated[int, msgspec.Meta(ge=0, le=_MAX_INTEGER)]
"""A number of at least 0: ms, tokens, lines."""


def convert_to_wire_name(field: str) -> str:
    """Return the wire's spelling of a Python field: `session_id` -> `sessionID`,
    `mime_type` -> `mimeType`.
    """
    head, *words = field.split("_")
    return head + "".join("ID" if word == "id" else word.capitalize() for word in words)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Wire(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=convert_to_wire_name
):
    """A frozen record with the wire's names.

    A field that has a default is left out of the JSON while it holds that default; a field that the
    wire always carries therefore has none. Unknown fields are ignored when reading.
    """
