"""Tests of the messages for refusals, failures and unreachable services;
none of them contains a key.
"""

import json
import socket
from typing import Any

import pytest

from codeloop.schema.errors import APIError, ContextOverflowError, ProviderAuthError
from codeloop.schema.wire import JSON
from tests.support.answers import Answer
from tests.support.model_server import ModelServer


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **fields: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"choices": [choice], **fields})


def refused(status: int, body: Any, **headers: str) -> Answer:
    return Answer(
        status=status, body=body if isinstance(body, str) else json.dumps(body), headers=headers
    )


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (
            refused(401, {"error": {"message": "bad key"}}),
            ProviderAuthError,
            ["bad key", "codeloop auth login acme"],
        ),
        (refused(403, "Forbidden"), ProviderAuthError, ["Forbidden", "codeloop auth login acme"]),
        (
            refused(404, {"error": "model not found"}),
            APIError,
            ["m1", "127.0.0.1", "codeloop models acme"],
        ),
        (
            refused(400, {"error": {"message": "The model `m1` does not exist"}}),
            APIError,
            ["codeloop models acme"],
        ),
        (
            refused(400, {"error": {"code": "context_length_exceeded"}}),
            ContextOverflowError,
            ["acme/m1"],
        ),
        (
            refused(400, {"error": {"message": "the maximum context length is 8192"}}),
            ContextOverflowError,
            [],
        ),
        (refused(413, "too big"), ContextOverflowError, []),
        (refused(302, "", location="http://127.0.0.1:1/"), APIError, ["not followed"]),
        (
            refused(
                502,
                "<html><head><title>502 Bad Gateway</title></head><body>x</body></html>",
                **{"content-type": "text/html"},
            ),
            APIError,
            ["502 Bad Gateway"],
        ),
        (refused(402, {"detail": "payment required"}), APIError, ["no credit"]),
        (
            refused(400, {"error": {"message": "x"}}, **{"x-request-id": "req_1"}),
            APIError,
            ["HTTP 400, request req_1"],
        ),
        (
            refused(500, {"error": {"message": "x"}, "request_id": "req_2"}),
            APIError,
            ["request req_2"],
        ),
        (
            Answer(stream=False, body="<!doctype html><title>Login</title>"),
            APIError,
            ["web page", "Login"],
        ),
        (Answer(stream=False, body='{"error":{"message":"boom","code":500}}'), APIError, ["boom"]),
        (Answer(events=('{"error":{"message":"boom","code":503}}',)), APIError, ["boom"]),
        (Answer(events=("not json",)), APIError, ["not what the protocol says"]),
        (Answer(events=(chunk({}, "error"),)), APIError, ["error"]),
        (Answer(events=()), APIError, ["before the answer was complete"]),
    ],
)
async def test_what_a_person_reads_of_a_failure(
    answer: Answer, kind: Any, says: Any, openai: Any, asking: Any
) -> None:
    async with ModelServer([answer]) as server:
        got = await asking(openai(server))
        assert len(server.requests) == 1
    assert got.end.reason == "error"
    assert isinstance(got.end.error, kind)
    for words in says:
        assert words in got.message
    assert "\n" not in got.message
    assert len(got.message) < 900


async def test_an_error_that_is_nested_too_deeply_is_shown_as_text(
    openai: Any, asking: Any
) -> None:
    async with ModelServer(
        [Answer(status=400, body='{"error":' + "[" * 3000 + "]" * 3000 + "}")]
    ) as server:
        got = await asking(openai(server))
    assert '{"error":[[[' in got.message


async def test_what_came_before_an_error_in_the_stream_stays(openai: Any, asking: Any) -> None:
    events = (
        chunk({"content": "one"}),
        json.dumps({"error": {"message": "overloaded", "code": 529}}),
    )
    async with ModelServer([Answer(events=events)]) as server:
        got = await asking(openai(server))
    assert got.text == "one"
    assert isinstance(got.end.error, APIError)
    assert (got.end.error.data.status_code, got.end.error.data.is_retryable) == (529, True)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_no_key_is_in_any_failure(status: int, openai: Any, asking: Any) -> None:
    key = "sk-test-0123456789abcdef"
    body = json.dumps(
        {"error": {"message": f"Incorrect API key provided: {key}"}, "headers": f"Bearer {key}"}
    )
    headers = {"authorization": key, "set-cookie": key, "x-request-id": "r1"}
    async with ModelServer([refused(status, body, **headers)]) as server:
        model = openai(
            server.url + "?token=secret-in-query", headers={"x-secret": "another-secret-1"}
        )
        got = await asking(model)
    shown = repr(got.end)
    for secret in (key, "secret-in-query", "another-secret-1", "set-cookie"):
        assert secret not in shown
    assert key not in repr(model)


async def test_an_unreachable_service_is_named(openai: Any, asking: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        got = await asking(openai(f"http://127.0.0.1:{port}/v1"))
    assert isinstance(got.end.error, APIError)
    assert got.end.error.data.is_retryable
    assert f"127.0.0.1:{port}" in got.message
    assert "refused" in got.message


async def test_an_unknown_host_is_named(openai: Any, asking: Any) -> None:
    got = await asking(openai("http://no-such-host.invalid/v1"))
    assert "no-such-host.invalid:80" in got.message
    assert "Check the network, and that acme runs there." in got.message
    got = await asking(openai("https://no-such-host.invalid/v1"))
    assert "Check the network and acme's base URL." in got.message


REFUSALS: list[tuple[int, JSON, str]] = [
    (403, {"error": {"code": "unsupported_country_region_territory", "message": "Country not supported"}},
     "another provider"),
    (400, {"error": {"message": "User location is not supported for the API use.", "status": "FAILED_PRECONDITION"}},
     "another provider"),
    (400, {"error": {"message": "Your organization must be verified to stream this model. Please go to: ..."}},
     "Verify the organization"),
    (400, {"error": {"code": "content_filter", "message": "The response was filtered due to the prompt triggering "
                     "Azure OpenAI's content management policy."}}, "/undo"),
    (400, {"error": {"message": "The model `gpt-4-32k` has been deprecated, learn more here: ..."}}, "another one"),
    (403, {"error": {"message": "Project `proj_1` does not have access to model `o3-pro`"}}, "enable it"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "says"), REFUSALS)
async def test_a_refusal_says_what_to_do(
    status: int, body: JSON, says: str, openai: Any, asking: Any
) -> None:
    async with ModelServer([refused(status, body)]) as server:
        got = await asking(openai(server))
    assert isinstance(got.end.error, APIError), "not the key is to blame"
    assert not got.end.error.data.is_retryable
    assert says in got.message
