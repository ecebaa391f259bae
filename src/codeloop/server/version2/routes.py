"""Finds the row of a request below `/api`, and makes the responses for results and errors."""

import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from starlette.convertors import Convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from codeloop.app.app import App
from codeloop.kit.lazy import load_object
from codeloop.model.errors import ModelUnavailable
from codeloop.schema.api.project import LOCATION_GET
from codeloop.schema.errors import CodeloopError, ErrorKind, OperationError, SessionNotFound
from codeloop.schema.operation import AnyOperation, Constant, NoArguments, Unsupported
from codeloop.schema.wire import JSON, Wire, encode_json
from codeloop.server.events.hub import Hub
from codeloop.server.requests import BadArguments, BodyTooLarge, get_directory, read_arguments
from codeloop.server.responses import make_error_response, make_response
from codeloop.server.version2.event_stream import open_event_stream, open_log, open_translator
from codeloop.server.version2.events import make_event, make_frames
from codeloop.server.version2.files import write_body
from codeloop.server.version2.request import Request2, TaggedError
from codeloop.server.version2.row import Answer, AnswerWrap, Forward
from codeloop.server.version2.rows import ANSWER_WRAPS, ANSWERS, ROWS
from codeloop.server.version2.state import KeptState

log = logging.getLogger("codeloop.server")
_TICKET_OPERATION = "v2.pty.connectToken"
_WRITE_OPERATION = "v2.fs.write"
_STREAMS = {"/api/event": open_event_stream, "/api/experimental/session/{sessionID}/log": open_log}
_TAGS: dict[ErrorKind, tuple[str, int]] = {
    "BadRequest": ("InvalidRequestError", 400),
    "NotFoundError": ("NotFoundError", 404),
    "SessionBusyError": ("SessionBusyError", 409),
    "PtyForbiddenError": ("ForbiddenError", 403),
    "PermissionNotFoundError": ("PermissionNotFoundError", 404),
    "QuestionNotFoundError": ("QuestionNotFoundError", 404),
    "PtyNotFoundError": ("PtyNotFoundError", 404),
    "McpServerNotFoundError": ("McpServerNotFoundError", 404),
    "ProjectNotFoundError": ("ProjectNotFoundError", 404),
}
"""Errors -> their tag and HTTP status; those of no row are invalid requests."""
_ID_FIELDS = {
    "PermissionNotFoundError": "requestID",
    "QuestionNotFoundError": "requestID",
    "PtyNotFoundError": "ptyID",
    "McpServerNotFoundError": "server",
    "ProjectNotFoundError": "projectID",
    "SessionBusyError": "sessionID",
}
"""The field of an error that names what it is about; the path of the request has its value."""

_Pattern = tuple[AnyOperation, re.Pattern[str], dict[str, Convertor[Any]]]
RunOperation = Callable[
    [Callable[[], Awaitable[Any]], Callable[[Exception], Response]], Awaitable[Response]
]


class Version2Site:
    """The contract of version 2 for one server. `run` turns results and errors into responses."""

    def __init__(self, app: App, hub: Hub, run: RunOperation) -> None:
        self._app = app
        self._hub = hub
        self._run = run
        self._state = KeptState(self._publish)
        hub.open_translator = partial(open_translator, self._state.announced)
        # `{path:path}` of Starlette matches slashes too; OpenAPI has no such form.
        self._patterns: list[_Pattern] = []
        for row in ROWS:
            pattern, _, convertors = compile_path(row.path.replace("{path}", "{path:path}"))
            self._patterns.append((row, pattern, convertors))
        hub.on_close.append(self._close)

    def _publish(self, kind: str, data: JSON, directory: str | None) -> None:
        self._hub.add_to_version2(make_frames([make_event(kind, data, directory)]))

    def _close(self) -> None:
        for task in list(self._state.tasks):
            task.cancel()

    async def respond(self, request: Request) -> Response:
        """Return the response to a request below `/api`."""
        return await self._run(lambda: self._answer(request), _make_error_response)

    async def _answer(self, request: Request) -> Response:
        # Not of the URL, which ends before a `?` or `#` that a name holds.
        path, method = request.scope["path"], request.method.replace("HEAD", "GET")
        others: list[AnyOperation] = []
        for row, pattern, convertors in self._patterns:
            if (match := pattern.match(path)) is None:
                continue
            if row.method != method:
                others.append(row)
                continue
            request.scope["path_params"] = {
                name: convertors[name].convert(value) for name, value in match.groupdict().items()
            }
            if row.path in _STREAMS:
                return await _STREAMS[row.path](request, self._app, self._hub)
            return await self._answer_row(request, row)
        if others:
            response = make_tagged_error(
                405, "MethodNotAllowedError", f"{path} does not take {request.method}."
            )
            # Of `/api/session/active` what is said of that path, not of `/api/session/{sessionID}`.
            own = [row for row in others if row.path == path] or others
            response.headers["allow"] = ", ".join(sorted({row.method for row in own}))
            return response
        raise TaggedError("NotFoundError", 404, f"There is no route {path}.")

    async def _answer_row(self, request: Request, row: AnyOperation) -> Response:
        # As in version 1: a header that browsers send only after a preflight.
        if row.id == _TICKET_OPERATION and request.headers.get("x-opencode-ticket") != "1":
            raise OperationError(
                "PtyForbiddenError", "A ticket needs the header `x-opencode-ticket: 1`."
            )
        is_write = row.id == _WRITE_OPERATION
        args = NoArguments() if is_write else await read_arguments(row, request)
        one = Request2(
            self._app,
            self._app.resolve_directory(get_directory(request)),
            self._state,
            str(request.base_url).rstrip("/"),
        )
        # Its body is the content of a file, not JSON.
        result = (
            await write_body(one, request)
            if is_write
            else await _carry_out(one, ANSWERS[row.id], args)
        )
        return (
            result
            if isinstance(result, Response)
            else await _wrap_result(one, ANSWER_WRAPS[row.id], result)
        )


async def _carry_out(request: Request2, answer: Answer, args: Wire) -> Any:
    """Return the answer to a request, in version 2's form. Raises CodeloopError."""
    match answer:
        case Forward():
            return answer.translate(
                await request.call(answer.operation, answer.make_arguments(args))
            )
        case Unsupported(text=text):
            raise TaggedError("InvalidRequestError", 400, text)
        case Constant(value=value):
            return value
        case _:
            return await load_object(f"server.version2.{answer}")(request, args)


async def _wrap_result(request: Request2, wrap: AnswerWrap, result: Any) -> Response:
    match wrap:
        case "none":
            return make_response(None)
        case "plain":
            return make_response(result)
        case "data":
            return make_response({"data": result})
        case "located":
            location = await request.call(LOCATION_GET, NoArguments())
            return make_response({"location": location, "data": result})


def _make_error_response(error: Exception) -> Response:
    """Return the response for an error, in the shapes of version 2."""
    match error:
        case TaggedError(tag=tag, status=status, data=data):
            return make_tagged_error(status, tag, str(error), **data)
        case BadArguments(kind=kind):
            return make_tagged_error(400, "InvalidRequestError", str(error), kind=kind)
        case BodyTooLarge():
            return make_tagged_error(
                413, "InvalidRequestError", "The body is too large.", kind="Body"
            )
        case SessionNotFound(session_id=session_id):
            return make_tagged_error(404, "SessionNotFoundError", str(error), sessionID=session_id)
        case OperationError(kind=kind) if kind in _TAGS:
            tag, status = _TAGS[kind]
            field = _ID_FIELDS.get(tag)
            more = {field: str(error).rpartition(": ")[2]} if field else {}
            return make_tagged_error(status, tag, str(error), **more)
        case ModelUnavailable():
            return make_tagged_error(400, "InvalidRequestError", str(error))
        case CodeloopError() if make_error_response(error).status_code < 500:
            return make_tagged_error(400, "InvalidRequestError", str(error))
        case _:
            response = make_error_response(error)
            if response.status_code < 500:
                return response
            data: JSON = msgspec.json.decode(bytes(response.body))["data"]
            return make_tagged_error(response.status_code, "UnknownError", **data)


def make_tagged_error(status: int, tag: str, message: str, **more: str | int | JSON) -> Response:
    """Return an error in the form of version 2."""
    body = {"_tag": tag, "message": message, **more}
    return Response(encode_json(body), status, media_type="application/json")
