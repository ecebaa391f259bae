"""The error responses of the OpenAPI document: schemas of the errors,
and which of them an operation may answer.
"""

from codeloop.schema.bounds.server import SERVER_BODY
from codeloop.server.openapi.schemas import Schema, make_component_reference

_STRING: Schema = {"type": "string"}
_BAD_REQUEST_KINDS = ["Params", "Headers", "Query", "Body", "Payload"]


def _describe_object(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _define_error(name: str, **optional_fields: Schema) -> Schema:
    """Return the schema of an error with a name and data.
    `optional_fields`: those of the data that may be missing.
    """
    data = _describe_object(message=_STRING)
    return _describe_object(
        name={"const": name}, data=data | {"properties": data["properties"] | optional_fields}
    )


def _define_tagged_error(tag: str, *fields: str) -> Schema:
    return _describe_object(_tag={"const": tag}, message=_STRING, **dict.fromkeys(fields, _STRING))


_WORKTREE_ERRORS = [
    "WorktreeNotGitError",
    "WorktreeCreateFailedError",
    "WorktreeStartCommandFailedError",
    "WorktreeRemoveFailedError",
    "WorktreeResetFailedError",
]

ERROR_SCHEMAS: dict[str, Schema] = {
    "BadRequestError": _define_error(
        "BadRequest", kind={"type": "string", "enum": _BAD_REQUEST_KINDS}
    ),
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
    "VcsApplyError": _define_error(
        "VcsApplyError", reason={"type": "string", "enum": ["non-git", "not-clean"]}
    ),
    "TaggedError": _describe_object(_tag=_STRING, message=_STRING),
    "WorktreeError": _describe_object(
        name={"type": "string", "enum": _WORKTREE_ERRORS}, data=_describe_object(message=_STRING)
    ),
}
"""Schemas of errors by name. `UnknownError`, of status 500,
is not here: it is the one that stored messages have.
"""


def _describe_response(description: str, *names: str) -> Schema:
    """Return a response; without names it has no body."""
    if not names:
        return {"description": description}
    errors = [make_component_reference(name) for name in names]
    schema: Schema = errors[0] if len(errors) == 1 else {"anyOf": errors}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


ERROR_RESPONSES: dict[str, Schema] = {
    "BadRequest": _describe_response(
        "The request does not fit, or can't be carried out as it is.", "BadRequestError"
    ),
    "Unauthorized": _describe_response("The credential is missing or wrong."),
    "Forbidden": _describe_response(
        "The request comes from a web page of another site.", "Refused"
    ),
    "TooMany": _describe_response("Too many wrong passwords from this address.", "Refused"),
    "TooManyStreams": _describe_response(
        "Too many event streams are open. Try again later.", "UnknownError"
    ),
    "TooLarge": _describe_response(
        f"The body is larger than {SERVER_BODY.value} bytes.", "BadRequestError"
    ),
    "Misdirected": _describe_response("The request was meant for another host.", "Refused"),
    "Failed": _describe_response(
        "An unexpected error; `ref` is in its entry of the server's log.", "UnknownError"
    ),
}
"""Responses that many operations share."""
_COMMON_RESPONSES = {
    "400": "BadRequest",
    "401": "Unauthorized",
    "403": "Forbidden",
    "421": "Misdirected",
    "429": "TooMany",
    "500": "Failed",
}
_NOT_FOUND_ERRORS = (
    ("/permission/grant", "NotFoundError"),
    ("/permission/rules", "NotFoundError"),
    ("/permission", "PermissionNotFoundError"),
    ("/question/", "QuestionNotFoundError"),
    ("/pty/", "PtyNotFoundError"),
    ("/mcp/", "McpServerNotFoundError"),
)
"""A piece of a path, and the error when what the path names does not exist;
for other paths it is a NotFoundError.
"""

_PATH_ERRORS = {
    "/experimental/worktree": "WorktreeError",
    "/experimental/project/{projectID}/copy": "ProjectCopyError",
    "/vcs/apply": "VcsApplyError",
}
"""The start of a path -> the error that says why an operation can't be carried out."""


def describe_failures(path: str, method: str, *, names_things: bool = False) -> dict[str, Schema]:
    """Return the error responses of an operation by status.

    `names_things`: its query or body may name something that does not exist, as a path may.
    """
    if path.startswith(("/api/", "/auth/connect/")):
        return _describe_version2_failures(path, method)
    responses = {
        status: {"$ref": f"#/components/responses/{name}"}
        for status, name in _COMMON_RESPONSES.items()
    }
    if method in {"POST", "PUT", "PATCH"}:
        responses["413"] = {"$ref": "#/components/responses/TooLarge"}
    if "{" in path or names_things:
        names = [name for piece, name in _NOT_FOUND_ERRORS if piece in path]
        if not names or "{sessionID}" in path:
            names.append("NotFoundError")
        responses["404"] = _describe_response(
            "The request names something that does not exist.", *names
        )
    if method == "POST" and path.startswith("/mcp/{name}/auth") and not path.endswith("/callback"):
        responses["400"] = _describe_response(
            "The server does not support OAuth, or signing in failed.",
            "McpUnsupportedOAuthError",
            "BadRequestError",
        )
    for start, name in _PATH_ERRORS.items():
        if method != "GET" and path.startswith(start):
            responses["400"] = _describe_response(
                "It can't be done; the message says why.", name, "BadRequestError"
            )
            responses["409"] = _describe_response(
                "A turn of a session is running in the work tree.", "SessionBusyError"
            )
    if method == "PATCH" and path == "/project/{projectID}":
        responses["404"] = _describe_response("There is no such project.", "ProjectNotFoundError")
    if method != "GET" and path.startswith("/session/{"):
        responses["409"] = _describe_response(
            "A turn of the session runs, here or in another process.", "SessionBusyError"
        )
    if path.endswith("/connect-token"):
        responses["403"] = _describe_response(
            "The header that asks for a ticket is missing.", "PtyForbiddenError", "BadRequestError"
        )
    return dict(sorted(responses.items()))


def _describe_version2_failures(path: str, method: str) -> dict[str, Schema]:
    """Return the error responses of an operation of version 2 by status."""
    responses = {
        status: {"$ref": f"#/components/responses/{name}"}
        for status, name in _COMMON_RESPONSES.items()
    }
    responses["400"] = _describe_response(
        "The request is not valid, or not supported.", "TaggedError"
    )
    responses["404"] = _describe_response(
        "The request names something that does not exist.", "TaggedError"
    )
    responses["409"] = _describe_response("Something that goes on prevents it.", "TaggedError")
    if path.endswith("/connect-token"):
        responses["403"] = _describe_response(
            "The header that asks for a ticket is missing.", "TaggedError", "Refused"
        )
    if method in {"POST", "PUT", "PATCH"}:
        responses["413"] = _describe_response("The body is too large.", "TaggedError")
        responses["503"] = _describe_response(
            "It takes longer than the server waits.", "TaggedError"
        )
    return dict(sorted(responses.items()))
