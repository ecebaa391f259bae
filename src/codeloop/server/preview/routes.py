"""The routes of the preview (`/api/*`), and the responses for its results and errors."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from codeloop.app.app import App
from codeloop.kit.lazy import load_object
from codeloop.schema.errors import CodeloopError, ErrorKind, OperationError, SessionNotFound
from codeloop.schema.operation import AnyOperation, Constant, NoArguments, Unsupported
from codeloop.schema.wire import Wire, encode_json
from codeloop.server.preview.operations import (
    ANSWER_WRAPS,
    ANSWERS,
    PREVIEW_OPERATIONS,
    Answer,
    AnswerWrap,
    Forward,
)
from codeloop.server.preview.request import PreviewRefused, PreviewRequest, make_refusal
from codeloop.server.requests import BadArguments, BodyTooLarge, get_directory, read_arguments
from codeloop.server.responses import make_error_response, make_response

RunOperation = Callable[
    [Callable[[], Awaitable[Any]], Callable[[Exception], Response]], Awaitable[Response]
]
_TICKET_OPERATION = "v2.pty.connectToken"
_VERSION_2_ERRORS: dict[ErrorKind, tuple[str, int]] = {
    "BadRequest": ("InvalidRequestError", 400),
    "NotFoundError": ("NotFoundError", 404),
    "SessionBusyError": ("ConflictError", 409),
    "PtyForbiddenError": ("ForbiddenError", 403),
}
"""Errors that have another name or form in version 2 -> their tag and HTTP status there."""


def make_preview_routes(app: App, run: RunOperation) -> list[BaseRoute]:
    """Return a route for each row of the preview. `run` turns results and errors into responses."""
    return [
        # `{path:path}` of Starlette matches slashes too; OpenAPI has no such form.
        Route(
            row.path.replace("{path}", "{path:path}"),
            _make_endpoint(app, row, run),
            methods=[row.method],
            name=row.id,
        )
        for row in PREVIEW_OPERATIONS
    ]


def _make_endpoint(
    app: App, row: AnyOperation, run: RunOperation
) -> Callable[[Request], Awaitable[Response]]:
    wrap = ANSWER_WRAPS[row.id]

    async def answer(request: Request) -> Response:
        # As in version 1: a header that browsers send only after a preflight.
        if row.id == _TICKET_OPERATION and request.headers.get("x-opencode-ticket") != "1":
            raise OperationError(
                "PtyForbiddenError", "A ticket needs the header `x-opencode-ticket: 1`."
            )
        args = await read_arguments(row, request)
        preview_request = PreviewRequest(app, app.resolve_directory(get_directory(request)))
        result = await _carry_out(preview_request, ANSWERS[row.id], args)
        return (
            result
            if isinstance(result, Response)
            else await _wrap_result(preview_request, wrap, result)
        )

    async def endpoint(request: Request) -> Response:
        return await run(lambda: answer(request), _make_error_response)

    return endpoint


async def _carry_out(preview_request: PreviewRequest, answer: Answer, args: Wire) -> Any:
    """Return the answer to a request, in version 2's form. Raises CodeloopError."""
    match answer:
        case Forward():
            return answer.translate(
                await preview_request.call(answer.operation, answer.make_arguments(args))
            )
        case Unsupported(text=text):
            raise make_refusal(text)
        case Constant(value=value):
            return value
        case _:
            return await load_object(f"server.preview.{answer}")(preview_request, args)


async def _wrap_result(preview_request: PreviewRequest, wrap: AnswerWrap, result: Any) -> Response:
    match wrap:
        case "none":
            return make_response(None)
        case "plain":
            return make_response(result)
        case "data":
            return make_response({"data": result})
        case "located":
            from codeloop.app.handlers.project.project import get_location

            project_location = await get_location(
                await preview_request.get_project(), NoArguments()
            )
            return make_response({"location": project_location, "data": result})


def _make_error_response(error: Exception) -> Response:
    """Return the response for an error, in the shapes of version 2."""
    match error:
        case PreviewRefused(tag=tag, status=status, data=data):
            return _make_tagged_error(status, tag, str(error), **data)
        case BadArguments(kind=kind):
            return _make_tagged_error(400, "InvalidRequestError", str(error), kind=kind)
        case BodyTooLarge():
            return _make_tagged_error(
                413, "InvalidRequestError", "The body is too large.", kind="Body"
            )
        case SessionNotFound(session_id=session_id):
            return _make_tagged_error(404, "SessionNotFoundError", str(error), sessionID=session_id)
        case OperationError(kind=kind) if kind in _VERSION_2_ERRORS:
            tag, status = _VERSION_2_ERRORS[kind]
            return _make_tagged_error(status, tag, str(error))
        # Those of permissions, questions and terminals are the same in both versions.
        case OperationError():
            return make_error_response(error)
        case CodeloopError():
            return _make_tagged_error(400, "InvalidRequestError", str(error))
        case _:
            return make_error_response(error)


def _make_tagged_error(status: int, tag: str, message: str, **more: str) -> Response:
    body = {"_tag": tag, "message": message, **more}
    return Response(encode_json(body), status, media_type="application/json")
