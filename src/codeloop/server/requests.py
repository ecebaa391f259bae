"""Parses HTTP requests into the arguments of operations; an error names the wrong field."""

import math
import re
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import HTTPConnection, Request

from codeloop.schema.bounds.server import SERVER_BODY
from codeloop.schema.operation import AnyOperation
from codeloop.schema.wire import DECODE_ERRORS, Wire, bound_depth

COMMON_PARAMETERS = frozenset(
    {"directory", "workspace", "location[directory]", "location[workspace]", "auth_token"}
)
"""Query parameters of every route: project and credential.
They are arguments only if an operation has such a field.
"""

# The contract words errors differently, so msgspec's messages are taken apart. One of them reads:
#     Object missing required field `text` - at `$.parts[0]`
_MISSING_FIELD = r"Object missing required field `([^`]+)`"
_PATH_SUFFIX = r" - at `\$([^`]*)`$"
_PATH_STEP = r"\.(\w+)|\[(\d+|\.\.\.)\]"


def _parse_number(text: str) -> float:
    """Parse a number with a point or an exponent; some clients write an integer as 1.0.
    Raises ValueError.
    """
    value = float(text)
    # Python reads 1e999 as infinity, which no JSON can hold.
    if math.isinf(value):
        raise ValueError(f"{text} is too large")
    # From 2**53 on a float can't hold every integer, so what the client meant is no longer certain.
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


_decode = bound_depth(msgspec.json.Decoder(float_hook=_parse_number).decode)


class BadArguments(Exception):
    """A request does not match what its operation takes.

    `kind`: the part of the request that is wrong: Query,
    Body (not JSON) or Payload (JSON of another shape).
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class BodyTooLarge(Exception):
    """A body is larger than `SERVER_BODY`."""


async def read_arguments(operation: AnyOperation, request: Request) -> Wire:
    """Read the arguments of an operation from a request's path, and its query or its body.

    Raises BadArguments, BodyTooLarge.
    """
    has_body = operation.takes_body
    values = (
        await _read_payload(operation, request) if has_body else _read_query(operation, request)
    )
    values.update(request.path_params)
    try:
        # A query holds only text, so numbers and booleans have to be parsed;
        # in JSON they have types.
        args = msgspec.convert(values, operation.takes, strict=has_body)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BadArguments("Payload" if has_body else "Query", explain_error(str(error))) from error
    # Without `strict`, msgspec also takes the text "null" for None.
    for field, name in zip(args.__struct_fields__, args.__struct_encode_fields__, strict=True):
        if not has_body and name in values and getattr(args, field) is None:
            raise BadArguments("Query", f'A parameter is never null\n  at ["{name}"]')
    return args


def get_directory(request: HTTPConnection) -> str | None:
    """Return the directory that a request names: in its query, else in a header,
    percent-encoded or not; None: none.
    """
    query = request.query_params
    name = "location[directory]" if request.url.path.startswith("/api/") else "directory"
    directory = query.get(name) or query.get("directory")
    if directory:
        return directory
    header = request.headers.get("x-opencode-directory")
    return unquote(header) if header else None


def _read_query(operation: AnyOperation, request: Request) -> dict[str, Any]:
    fields = operation.takes.__struct_encode_fields__
    query = request.query_params
    return {
        key: value for key, value in query.items() if key not in COMMON_PARAMETERS or key in fields
    }


async def _read_payload(operation: AnyOperation, request: Request) -> dict[str, Any]:
    body = await read_body(request)
    try:
        value: Any = _decode(body) if body.strip() else {}
    except DECODE_ERRORS as error:
        raise BadArguments("Body", f"The body is not JSON: {error}") from error
    if operation.body is not None:
        return {_find_body_field(operation): value}
    try:
        return msgspec.convert(value, dict[str, Any])
    except msgspec.ValidationError as error:
        raise BadArguments("Payload", explain_error(str(error))) from error


def _find_body_field(operation: AnyOperation) -> str:
    """Return the name in JSON of the field that is the whole body."""
    fields = operation.takes.__struct_fields__
    return operation.takes.__struct_encode_fields__[fields.index(operation.body or "")]


async def read_body(request: Request) -> bytes:
    """Read a body. Raises BodyTooLarge, without reading the rest."""
    # A chunked body has no such header, so the bytes are counted, too.
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > SERVER_BODY.value:
        raise BodyTooLarge
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > SERVER_BODY.value:
            raise BodyTooLarge
    return bytes(chunks)


def explain_error(message: str) -> str:
    """Convert msgspec's message to the contract's form: what is wrong,
    then a line that says where.
    """
    match = re.search(_PATH_SUFFIX, message)
    steps = re.findall(_PATH_STEP, match.group(1)) if match else []
    problem = message[: match.start()] if match else message
    missing = re.match(_MISSING_FIELD, problem)
    names = [f'["{name}"]' if name else f"[{index}]" for name, index in steps]
    if missing:
        problem = "Missing key"
        names.append(f'["{missing.group(1)}"]')
    return f"{problem}\n  at {''.join(names)}" if names else problem
