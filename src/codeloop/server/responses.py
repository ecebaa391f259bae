"""Converts the results and errors of operations to HTTP responses in the contract's shapes."""

import logging
import re
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from codeloop.model.errors import ModelUnavailable
from codeloop.schema.bounds.server import SERVER_BODY
from codeloop.schema.errors import CodeloopError, ErrorKind, OperationError, SessionNotFound
from codeloop.schema.installation import InstallationChanged, find_change
from codeloop.schema.wire import encode_json
from codeloop.server.requests import BadArguments, BodyTooLarge
from codeloop.store.database import StoreError

log = logging.getLogger("codeloop.server")

STATUS_CODES: dict[ErrorKind, int] = {
    "NotFoundError": 404,
    "BadRequest": 400,
    "SessionBusyError": 409,
    "PermissionNotFoundError": 404,
    "QuestionNotFoundError": 404,
    "PtyNotFoundError": 404,
    "PtyForbiddenError": 403,
    "McpServerNotFoundError": 404,
    "McpUnsupportedOAuthError": 400,
    "ProjectNotFoundError": 404,
    "ProjectCopyError": 400,
    "VcsApplyError": 400,
    "WorktreeNotGitError": 400,
    "WorktreeCreateFailedError": 400,
    "WorktreeStartCommandFailedError": 400,
    "WorktreeRemoveFailedError": 400,
    "WorktreeResetFailedError": 400,
    "UnknownError": 500,
}
# Such as `ses_01hx...`: the ids of sessions, permission requests, questions and terminals.
_ID_IN_MESSAGE = r"\b(?:ses|per|que|pty)_\w+"
_ID_FIELDS: dict[ErrorKind, str] = {
    "SessionBusyError": "sessionID",
    "PermissionNotFoundError": "requestID",
    "QuestionNotFoundError": "requestID",
    "PtyNotFoundError": "ptyID",
    "McpServerNotFoundError": "name",
    "McpUnsupportedOAuthError": "error",
    "ProjectNotFoundError": "projectID",
}
"""Errors in the tagged form (`_tag`, `message`) -> their third field: an id, a name,
or the message once more.

The contract has two forms of errors; all others have the one with `name` and `data`.
"""
_TAGGED_KINDS = {*_ID_FIELDS, "PtyForbiddenError"}


def make_response(result: Any) -> Response:
    """Make the JSON response of an operation's result; None: 204."""
    if result is None:
        return Response(status_code=204)
    return Response(encode_json(result), media_type="application/json")


def make_error_response(error: Exception) -> Response:
    """Return the response for an error.

    An unexpected one is logged under a reference, and only the reference is sent: its
    text may hold private data.
    """
    match error:
        case BadArguments(kind=kind):
            return _make_named_error(400, "BadRequest", str(error), kind=kind)
        case BodyTooLarge():
            return _make_named_error(
                413,
                "BadRequest",
                f"The body is larger than {SERVER_BODY.value} bytes.",
                kind="Body",
            )
        case SessionNotFound():
            return _make_named_error(404, "NotFoundError", str(error), cause=type(error).__name__)
        case OperationError(kind=kind):
            return _make_operation_error(kind, str(error), error.data)
        case ClientDisconnect():
            # Nobody is there to read it, and it is not worth an entry in the log.
            return Response(status_code=400)
        case StoreError() | InstallationChanged():
            log.error("%s", error)
            return _make_named_error(500, "UnknownError", str(error))
        case ModelUnavailable():
            # Our own client tells this error apart by its cause.
            return _make_named_error(400, "BadRequest", str(error), cause=type(error).__name__)
        case CodeloopError():
            return _make_named_error(400, "BadRequest", str(error))
        case _ if change := find_change(error):
            log.error("%s", change, exc_info=error)
            return _make_named_error(500, "UnknownError", str(change))
        case _:
            ref = f"err_{secrets.token_hex(4)}"
            log.error("unforeseen error %s", ref, exc_info=error)
            return _make_named_error(
                500, "UnknownError", "Something unforeseen went wrong; the log has it.", ref=ref
            )


def _make_operation_error(
    kind: ErrorKind, message: str, data: Mapping[str, str | bool]
) -> Response:
    status = STATUS_CODES[kind]
    if kind not in _TAGGED_KINDS:
        return _make_named_error(status, kind, message, **data)
    body: dict[str, Any] = {"_tag": kind, "message": message}
    field = _ID_FIELDS.get(kind)
    if field == "error":
        body[field] = message
    elif field is not None:
        match = re.search(_ID_IN_MESSAGE, message)
        # Names of MCP servers and ids of projects have no prefix to find them
        # by: they end the message.
        body[field] = match.group() if match else message.rpartition(": ")[2]
    return Response(encode_json(body), status, media_type="application/json")


def _make_named_error(status: int, name: str, message: str, **data: str | bool) -> Response:
    body = {"name": name, "data": {"message": message, **data}}
    return Response(encode_json(body), status, media_type="application/json")


def make_not_found(path: str) -> Response:
    """Return the 404 response for an unknown path."""
    return _make_named_error(404, "NotFoundError", f"There is no route {path}.")


def make_wrong_method(path: str, method: str) -> Response:
    """Return the 405 response for a method that a path does not take."""
    return _make_named_error(405, "BadRequest", f"{path} does not take {method}.")
