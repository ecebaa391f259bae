"""The base Struct of everything on the wire, on disk and in events."""

from typing import Annotated, Any, dataclass_transform

import msgspec

replace = msgspec.structs.replace
"""Returns a copy of a record with some fields changed."""

JSON = dict[str, Any]
"""A JSON object whose shape is not fixed here, such as a tool's input or metadata."""

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for data that is not of the expected shape, not UTF-8, or nested too deeply."""

# Clients in JavaScript hold numbers as floats, which are exact for integers up to here.
_MAX_INTEGER = 2**53 - 1

Count = Annotated[int, msgspec.Meta(ge=1, le=_MAX_INTEGER)]
"""A number of at least 1: how many of something, at most how many, ms."""

Natural = Annotated[int, msgspec.Meta(ge=0, le=_MAX_INTEGER)]
"""A number of at least 0: ms, tokens, lines."""


def convert_to_wire_name(field: str) -> str:
    """Return the wire's spelling of a Python field: `session_id` -> `sessionID`, `mime_type` -> `mimeType`."""
    head, *words = field.split("_")
    return head + "".join("ID" if word == "id" else word.capitalize() for word in words)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=convert_to_wire_name):
    """A frozen record with the wire's names.

    A field that has a default is left out of the JSON while it holds that default; a field that the
    wire always carries therefore has none. Unknown fields are ignored when reading.
    """
