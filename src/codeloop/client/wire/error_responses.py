"""Converts the error responses of a server to the exceptions that a call in the
same process would raise.
"""

from typing import Any, cast, get_args

from codeloop.model.errors import ModelUnavailable
from codeloop.schema.errors import CodeloopError, ErrorKind, OperationError, SessionNotFound
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json

_ERROR_KINDS: frozenset[str] = frozenset(get_args(ErrorKind))
_MODEL_ERRORS = {
    each.__name__: each for each in (ModelUnavailable, *ModelUnavailable.__subclasses__())
}
_SIGN_IN_HINT = (
    "Give its password (--password, in Python password=), or set CODELOOP_SERVER_PASSWORD; that of a server that runs "
    "as you on this machine is found by itself."
)


def decode_error_response(status: int, body: bytes, url: str) -> CodeloopError:
    """Return the exception for a response with an error: by the fields of its body,
    else by its status.
    """
    error = _decode_object(body)
    fields = _get_fields(error)
    # The API has two shapes of errors: `_tag` with the fields beside it,
    # and `name` with the fields in `data`.
    name = error.get("_tag") or error.get("name")
    message = fields.get("message") or error.get("message")
    text = message if isinstance(message, str) else ""
    cause = fields.get("cause")
    if isinstance(cause, str) and cause in _MODEL_ERRORS:
        return _MODEL_ERRORS[cause](text)
    # The message ends with the id, and SessionNotFound makes the same message from it.
    if cause == SessionNotFound.__name__:
        return SessionNotFound(text.rpartition(": ")[2])
    if isinstance(name, str) and name in _ERROR_KINDS:
        return OperationError(cast("ErrorKind", name), text or f"{url} answered {status}.")
    match status:
        case 401:
            return CodeloopError(
                f"The server at {url} wants a password, or another one. {_SIGN_IN_HINT}"
            )
        # The server answers to known host names only, against DNS rebinding.
        case 421:
            return CodeloopError(
                f"{url} is not a name that the server goes by. Use the address that it printed."
            )
        case 403:
            return CodeloopError(
                f"The server at {url} does not let this client in. {text}".rstrip()
            )
        case 404:
            return OperationError(
                "NotFoundError",
                text or f"{url} does not offer this. Use a codeloop of its version.",
            )
        # A redirect is not followed: it would send the password to another server.
        case _ if 300 <= status < 400:
            return CodeloopError(
                f"{url} sends clients elsewhere; a password is not sent on. Use that address."
            )
        case _:
            return CodeloopError(f"The server at {url} answered {status}. {text}".rstrip())


def _decode_object(body: bytes) -> JSON:
    """Decode a JSON object; any other body, such as the page of a proxy, counts as an empty one."""
    try:
        return decode_json(body, dict[str, Any])
    except DECODE_ERRORS:
        return {}


def _get_fields(error: JSON) -> JSON:
    """Return the object `data` of an error; empty if it has none."""
    fields = error.get("data")
    return cast("JSON", fields) if isinstance(fields, dict) else {}
