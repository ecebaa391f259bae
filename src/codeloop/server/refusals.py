"""Refusals of requests: the exception that stands for one, and how it is logged and answered."""

import logging
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.types import Scope, Send

from codeloop.kit.text.terminal_text import one_line
from codeloop.server.credentials import Headers

log = logging.getLogger("codeloop.server")
_TAGS = {
    HTTPStatus.UNAUTHORIZED: "UnauthorizedError",
    HTTPStatus.FORBIDDEN: "ForbiddenError",
    HTTPStatus.TOO_MANY_REQUESTS: "ServiceUnavailableError",
}
"""The tags of refusals in version 2; the others are invalid requests."""


class RequestRefused(Exception):
    """A refused request. `why` is for the log, `message` for the client; None: an empty body.

    `headers`: of the response, with `_` for `-` in their names.
    """

    def __init__(
        self, status: HTTPStatus, why: str, message: str | None = None, **headers: str
    ) -> None:
        super().__init__(why)
        self.status = status
        self.message = message
        self.headers: Headers = [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ]


async def send_refusal(scope: Scope, send: Send, refusal: RequestRefused) -> None:
    """Log a refusal, and answer with it."""
    method = scope.get("method", "WebSocket")
    path, who = one_line(scope["path"], 200), (scope.get("client") or ("?",))[0]
    # Guesses beyond the delayed ones are answered at once, as fast as they come;
    # at this level they would fill the log.
    level = logging.DEBUG if refusal.status == HTTPStatus.TOO_MANY_REQUESTS else logging.WARNING
    log.log(
        level,
        "refused %s: %s %s from %s, %s",
        int(refusal.status),
        method,
        path,
        who,
        one_line(str(refusal), 200),
    )
    kind = "http" if scope["type"] == "http" else "websocket.http"
    if scope["type"] == "websocket" and "websocket.http.response" not in (
        scope.get("extensions") or {}
    ):
        # Policy violation, by RFC 6455.
        await send({"type": "websocket.close", "code": 1008})
        return
    body = _encode_refusal(refusal, path)
    headers = [*refusal.headers, (b"content-length", str(len(body)).encode())]
    if body:
        headers.append((b"content-type", b"application/json"))
    await send(
        {"type": f"{kind}.response.start", "status": int(refusal.status), "headers": headers}
    )
    await send({"type": f"{kind}.response.body", "body": body})


def _encode_refusal(refusal: RequestRefused, path: str) -> bytes:
    """Return the body of a refusal, in the form of version 2 below `/api`."""
    if path.startswith("/api/"):
        tag = _TAGS.get(refusal.status, "InvalidRequestError")
        message = refusal.message or refusal.status.phrase
        return msgspec.json.encode({"_tag": tag, "message": message})
    if refusal.message is None:
        return b""
    value: dict[str, Any] = {"name": "Refused", "data": {"message": refusal.message}}
    return msgspec.json.encode(value)
