"""Encodes an operation and its arguments as an HTTP request: the path,
the query and the JSON body.
"""

import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from codeloop.schema.errors import OperationError
from codeloop.schema.operation import AnyOperation
from codeloop.schema.wire import JSON, encode_json

# A parameter in the path of an operation: `/session/{session_id}`.
_PATH_PLACEHOLDER = r"\{(\w+)\}"


class EncodedRequest(NamedTuple):
    """The path of a request, with its query, and its body; None: it has no body."""

    path: str
    body: bytes | None


def encode_request(operation: AnyOperation, args: msgspec.Struct) -> EncodedRequest:
    """Encode an operation's arguments. Raises OperationError when a field
    can't be part of the path.
    """
    fields: JSON = msgspec.to_builtins(args)

    def fill(match: re.Match[str]) -> str:
        value = str(fields.pop(match[1]))
        # A URL parser would drop such a segment, and the request would reach another route.
        if value in {"", ".", ".."}:
            raise OperationError("BadRequest", f"{match[1]} can't be {value!r}.")
        return quote(value.encode("utf-8", "replace"), safe="")

    path = re.sub(_PATH_PLACEHOLDER, fill, operation.path)
    if not operation.takes_body:
        query = {
            name: _format_query_value(value) for name, value in fields.items() if value is not None
        }
        return EncodedRequest(
            f"{path}?{urlencode(query, errors='replace')}" if query else path, None
        )
    if operation.body is not None:
        return EncodedRequest(path, encode_json(msgspec.to_builtins(getattr(args, operation.body))))
    return EncodedRequest(path, encode_json(fields))


def _format_query_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
