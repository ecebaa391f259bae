"""The protocols that the model server speaks, one row each, found by a request's path."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bench.protocols import anthropic, bedrock, chat_completions, google, interactions, responses
from tests.support.answers import Answer

SSE_TYPE = "text/event-stream; charset=utf-8"
AWS_TYPE = "application/vnd.amazon.eventstream"


class Dialect(NamedTuple):
    """One protocol, as functions.

    `suffix`: the end of its requests' paths. `stream_events(answer, model)`: the bytes of each
    event of a streamed answer. `make_response(answer, model)`: the body of an answer that does not
    stream. `check_request(path, body)`: the reason for which the service would refuse a request, or
    None. `make_error(kind, message)`: the body of a refusal.
    """

    suffix: str
    stream_events: Callable[[Answer, str], Iterator[bytes]]
    make_response: Callable[[Answer, str], bytes]
    check_request: Callable[[str, bytes], str | None]
    make_error: Callable[[str, str], bytes]
    content_type: str = SSE_TYPE


DIALECTS: dict[str, Dialect] = {
    "openai-chat": Dialect(
        "/chat/completions",
        chat_completions.stream_events,
        chat_completions.make_response,
        chat_completions.check_request,
        chat_completions.make_error,
    ),
    "openai-responses": Dialect(
        "/responses",
        responses.stream_events,
        responses.make_response,
        responses.check_request,
        chat_completions.make_error,
    ),
    "anthropic-messages": Dialect(
        "/messages",
        anthropic.stream_events,
        anthropic.make_response,
        anthropic.check_request,
        anthropic.make_error,
    ),
    "anthropic-vertex": Dialect(
        ":streamRawPredict",
        anthropic.stream_events,
        anthropic.make_response,
        anthropic.check_vertex_request,
        anthropic.make_error,
    ),
    "google-generate-content": Dialect(
        ":streamGenerateContent",
        google.stream_events,
        google.make_response,
        google.check_request,
        google.make_error,
    ),
    "google-interactions": Dialect(
        "/interactions",
        interactions.stream_events,
        interactions.make_response,
        interactions.check_request,
        google.make_error,
    ),
    "bedrock-converse": Dialect(
        "/converse-stream",
        bedrock.stream_events,
        bedrock.make_response,
        bedrock.check_request,
        bedrock.make_error,
        AWS_TYPE,
    ),
}
"""By the names of the protocols in codeloop's configuration."""


def find_dialect(path: str) -> Dialect | None:
    """Return the protocol of a request's path, None if no protocol has that path."""
    return next(
        (each for each in DIALECTS.values() if path.partition("?")[0].endswith(each.suffix)), None
    )


def make_server_error(path: str, kind: str, message: str) -> bytes:
    """Return the body of an error in the form of the path's service;
    OpenAI's form for an unknown path.
    """
    dialect = find_dialect(path)
    return (
        dialect.make_error(kind, message) if dialect else chat_completions.make_error(kind, message)
    )
