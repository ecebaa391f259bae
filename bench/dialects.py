"""The protocols that the model server speaks, one row each: how requests are told apart, checked and answered."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bench import bedrock, google, interactions
from bench.history import anthropic_complaint, complaint
from bench.protocols import anthropic_events, anthropic_whole, error_body, openai_events, openai_whole
from bench.responses import responses_events, responses_whole
from tests.support.answers import Answer

SSE = "text/event-stream; charset=utf-8"


class Dialect(NamedTuple):
    """One protocol.

    `suffix`: what the path of its requests ends with. `events`: an answer as it streams, one piece for each event.
    `complaint`: why the service would refuse a request (path, body); None: it would not. `error`: kind and message as
    the body of a refusal.
    """

    suffix: str
    events: Callable[[Answer, str], Iterator[bytes]]
    whole: Callable[[Answer, str], bytes]
    complaint: Callable[[str, bytes], str | None]
    error: Callable[[str, str], bytes]
    content_type: str = SSE


def anthropic_error(kind: str, message: str) -> bytes:
    """Return an error as Anthropic words it."""
    return error_body("/messages", kind, message)


def openai_error(kind: str, message: str) -> bytes:
    """Return an error as OpenAI words it."""
    return error_body("", kind, message)


def vertex_complaint(path: str, body: bytes) -> str | None:
    """Check a request for Claude on Vertex AI: the model is in the path, the version in the body."""
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        return "Request contains an invalid argument."
    if request.get("anthropic_version") != "vertex-2023-10-16":
        return "anthropic_version: Field required"
    if "model" in request:
        return "model: Extra inputs are not permitted"
    if "/publishers/anthropic/models/" not in path:
        return f"no publisher in {path}"
    return anthropic_complaint(request)


DIALECTS: dict[str, Dialect] = {
    "openai-chat": Dialect("/chat/completions", openai_events, openai_whole, complaint, openai_error),
    "openai-responses": Dialect("/responses", responses_events, responses_whole, complaint, openai_error),
    "anthropic-messages": Dialect("/messages", anthropic_events, anthropic_whole, complaint, anthropic_error),
    "anthropic-vertex": Dialect(
        ":streamRawPredict", anthropic_events, anthropic_whole, vertex_complaint, anthropic_error
    ),
    "google-generate-content": Dialect(
        ":streamGenerateContent", google.events, google.whole, google.complaint, google.error
    ),
    "google-interactions": Dialect(
        "/interactions", interactions.events, interactions.whole, interactions.complaint, google.error
    ),
    "bedrock-converse": Dialect(
        "/converse-stream",
        bedrock.events,
        bedrock.whole,
        bedrock.complaint,
        bedrock.error,
        "application/vnd.amazon.eventstream",
    ),
}
"""By protocol."""


def dialect_of(path: str) -> Dialect | None:
    """Return what is spoken at a path; None: nothing."""
    return next((each for each in DIALECTS.values() if path.partition("?")[0].endswith(each.suffix)), None)


def server_error(path: str, kind: str, message: str) -> bytes:
    """Return an error as the service of the path words it."""
    found = dialect_of(path)
    return found.error(kind, message) if found else openai_error(kind, message)
