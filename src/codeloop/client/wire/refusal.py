"""Converts a server's error response to the exception that a local call would raise."""

from typing import Any, cast, get_args

import msgspec

from codeloop.model.errors import ModelUnavailable
from codeloop.schema.errors import CodeloopError, Kind, OperationError, SessionNotFound
from codeloop.schema.wire import JSON

KINDS: frozenset[str] = frozenset(get_args(Kind))
UNAVAILABLE = {each.__name__: each for each in (ModelUnavailable, *ModelUnavailable.__subclasses__())}
HINT = (
    "Give its password (--password, in Python password=), or set CODELOOP_SERVER_PASSWORD; that of a server that runs "
    "as you on this machine is found by itself."
)


def refusal_of(status: int, body: bytes, url: str) -> CodeloopError:
    """Return the error for a refusal: by the contract's shapes, else by its status."""
    error = _object(body)
    data = _inner(error)
    name = error.get("_tag") or error.get("name")
    message = data.get("message") or error.get("message")
    text = message if isinstance(message, str) else ""
    cause = data.get("cause")
    if isinstance(cause, str) and cause in UNAVAILABLE:
        return UNAVAILABLE[cause](text)
    if cause == SessionNotFound.__name__:
        return SessionNotFound(text.rpartition(": ")[2])
    if isinstance(name, str) and name in KINDS:
        return OperationError(cast("Kind", name), text or f"{url} answered {status}.")
    match status:
        case 401:
            return CodeloopError(f"The server at {url} wants a password, or another one. {HINT}")
        case 421:
            return CodeloopError(f"{url} is not a name that the server goes by. Use the address that it printed.")
        case 403:
            return CodeloopError(f"The server at {url} does not let this client in. {text}".rstrip())
        case 404:
            return OperationError("NotFoundError", text or f"{url} does not offer this. Use a codeloop of its version.")
        case _ if 300 <= status < 400:
            return CodeloopError(f"{url} sends clients elsewhere; a password is not sent on. Use that address.")
        case _:
            return CodeloopError(f"The server at {url} answered {status}. {text}".rstrip())


def _object(body: bytes) -> JSON:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}


def _inner(error: JSON) -> JSON:
    data = error.get("data")
    return cast("JSON", data) if isinstance(data, dict) else {}
