"""The error responses of the OpenAPI document."""

from codeloop.schema.bounds.server import SERVER_BODY
from codeloop.server.openapi.schemas import Schema, reference

_STRING: Schema = {"type": "string"}
_KINDS = ["Params", "Headers", "Query", "Body", "Payload"]


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _define_error(name: str, **more: Schema) -> Schema:
    """Return an error that has a name and data; `more` of its data may be left out."""
    data = _object(message=_STRING)
    return _object(name={"const": name}, data=data | {"properties": data["properties"] | more})


def _define_tagged_error(tag: str, *fields: str) -> Schema:
    return _object(_tag={"const": tag}, message=_STRING, **dict.fromkeys(fields, _STRING))


_WORKTREE = [f"Worktree{what}Error" for what in ("NotGit", "CreateFailed", "StartCommandFailed", "RemoveFailed")]
_WORKTREE.append("WorktreeResetFailedError")

ERRORS: dict[str, Schema] = {
    "BadRequestError": _define_error("BadRequest", kind={"type": "string", "enum": _KINDS}),
    "NotFoundError": _define_error("NotFoundError"),
    "Refused": _define_error("Refused"),
    "SessionBusyError": _define_tagged_error("SessionBusyError", "sessionID"),
    "PermissionNotFoundError": _define_tagged_error("PermissionNotFoundError", "requestID"),
    "QuestionNotFoundError": _define_tagged_error("QuestionNotFoundError", "requestID"),
    "PtyNotFoundError": _define_tagged_error("PtyNotFoundError", "ptyID"),
    "PtyForbiddenError": _define_tagged_error("PtyForbiddenError"),
    "McpServerNotFoundError": _define_tagged_error("McpServerNotFoundError", "name"),
    "McpUnsupportedOAuthError": _define_tagged_error("McpUnsupportedOAuthError", "error"),
    "ProjectNotFoundError": _define_tagged_error("ProjectNotFoundError", "projectID"),
    "ProjectCopyError": _define_error("ProjectCopyError", forceRequired={"type": "boolean"}),
    "VcsApplyError": _define_error("VcsApplyError", reason={"type": "string", "enum": ["non-git", "not-clean"]}),
    "InvalidRequestError": _define_tagged_error("InvalidRequestError"),
    "SessionNotFoundError": _define_tagged_error("SessionNotFoundError", "sessionID"),
    "MessageNotFoundError": _define_tagged_error("MessageNotFoundError", "sessionID", "messageID"),
    "ProviderNotFoundError": _define_tagged_error("ProviderNotFoundError", "providerID"),
    "ThingNotFoundError": _define_tagged_error("NotFoundError"),
    "ConflictError": _define_tagged_error("ConflictError"),
    "ForbiddenError": _define_tagged_error("ForbiddenError"),
    "InvalidCursorError": _define_tagged_error("InvalidCursorError"),
    "ServiceUnavailableError": _define_tagged_error("ServiceUnavailableError"),
    "WorktreeError": _object(name={"type": "string", "enum": _WORKTREE}, data=_object(message=_STRING)),
}
"""What errors hold; a stored message's own `UnknownError` is that of the status 500."""


def _response(description: str, *names: str) -> Schema:
    """Return a response; without names it has no body."""
    if not names:
        return {"description": description}
    shapes = [reference(name) for name in names]
    schema: Schema = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


RESPONSES: dict[str, Schema] = {
    "BadRequest": _response("The request does not fit, or can't be carried out as it is.", "BadRequestError"),
    "Unauthorized": _response("The credential is missing or wrong."),
    "Forbidden": _response("A web page from elsewhere asked.", "Refused"),
    "TooMany": _response("Too many wrong passwords from there.", "Refused"),
    "TooManyStreams": _response("As many streams as may be are open. Try again later.", "UnknownError"),
    "TooLarge": _response(f"The body is larger than {SERVER_BODY.value} bytes.", "BadRequestError"),
    "Misdirected": _response("The request was meant for another host.", "Refused"),
    "Failed": _response("Something unforeseen; `ref` finds it in the server's log.", "UnknownError"),
}
"""Responses that many operations share."""
_EVERYWHERE = {
    "400": "BadRequest",
    "401": "Unauthorized",
    "403": "Forbidden",
    "421": "Misdirected",
    "429": "TooMany",
    "500": "Failed",
}
_MISSING = (
    ("/permission/grant", "NotFoundError"),
    ("/permission/rules", "NotFoundError"),
    ("/permission", "PermissionNotFoundError"),
    ("/question/", "QuestionNotFoundError"),
    ("/pty/", "PtyNotFoundError"),
    ("/mcp/", "McpServerNotFoundError"),
)
"""What the contract calls a thing that is not there, by a piece of its path; else it is a NotFoundError."""

_OWN = {
    "/experimental/worktree": "WorktreeError",
    "/experimental/project/{projectID}/copy": "ProjectCopyError",
    "/vcs/apply": "VcsApplyError",
}
"""The errors of these paths that say why something can't be done."""


def failures(path: str, method: str, *, names_things: bool = False) -> dict[str, Schema]:
    """Return the error responses of an operation by status. `names_things`: its query or body does, too."""
    if path.startswith("/api/") and path not in _OF_VERSION_1:
        return _fail_preview(path, method)
    responses = {status: {"$ref": f"#/components/responses/{name}"} for status, name in _EVERYWHERE.items()}
    if method in {"POST", "PUT", "PATCH"}:
        responses["413"] = {"$ref": "#/components/responses/TooLarge"}
    if "{" in path or names_things:
        names = [name for piece, name in _MISSING if piece in path]
        if not names or "{sessionID}" in path:
            names.append("NotFoundError")
        responses["404"] = _response("What the request names is not there.", *names)
    if method == "POST" and path.startswith("/mcp/{name}/auth") and not path.endswith("/callback"):
        responses["400"] = _response(
            "Nobody signs in at that server, or that failed.", "McpUnsupportedOAuthError", "BadRequestError"
        )
    for start, name in _OWN.items():
        if method != "GET" and path.startswith(start):
            responses["400"] = _response("It can't be done; the message says why.", name, "BadRequestError")
            responses["409"] = _response("A turn of a session runs there.", "SessionBusyError")
    if method == "PATCH" and path == "/project/{projectID}":
        responses["404"] = _response("There is no such project.", "ProjectNotFoundError")
    if method != "GET" and path.startswith("/session/{"):
        responses["409"] = _response("A turn of the session runs, here or in another process.", "SessionBusyError")
    if path.endswith("/connect-token"):
        responses["403"] = _response(
            "The header that asks for a ticket is missing.", "PtyForbiddenError", "BadRequestError"
        )
    return dict(sorted(responses.items()))


_OF_VERSION_1 = frozenset(("/api/location", "/api/fs/find"))
_NOT_THERE = ("ThingNotFoundError", "SessionNotFoundError", "MessageNotFoundError", "ProviderNotFoundError")
_NOT_THERE_V1 = ("PermissionNotFoundError", "QuestionNotFoundError", "PtyNotFoundError")


def _fail_preview(path: str, method: str) -> dict[str, Schema]:
    """Return the error responses of an operation of the preview by status."""
    responses = {status: {"$ref": f"#/components/responses/{name}"} for status, name in _EVERYWHERE.items()}
    responses["400"] = _response("It does not fit, or is not offered.", "InvalidRequestError", "InvalidCursorError")
    if path.endswith("/connect-token"):
        responses["403"] = _response("The header that asks for a ticket is missing.", "ForbiddenError", "Refused")
    responses["404"] = _response("What the request names is not there.", *_NOT_THERE, *_NOT_THERE_V1)
    if method in {"POST", "PUT", "PATCH"}:
        responses["409"] = _response("A turn runs.", "ConflictError")
        responses["413"] = _response("The body is too large.", "InvalidRequestError")
        responses["503"] = _response("It takes longer than the server waits.", "ServiceUnavailableError")
    return dict(sorted(responses.items()))
