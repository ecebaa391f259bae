"""Tests of the messages for errors of Google, Amazon and Anthropic,
with bodies of the real services.
"""

import json
from typing import Any

import pytest

from codeloop.net.wait_hints import read_wait
from codeloop.schema.errors import APIError, ProviderAuthError
from tests.support.adapter_rows import ADAPTER_ROWS
from tests.support.answers import Answer
from tests.support.model_server import ModelServer
from tests.support.models import send_request

GOOGLE_KEY = {
    "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        ],
    }
}
GOOGLE_RATE = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details. Retry in 34.07s.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}],
    }
}
GOOGLE_REGION = {
    "error": {
        "code": 400,
        "message": "User location is not supported for the API use.",
        "status": "FAILED_PRECONDITION",
    }
}
GOOGLE_DISABLED = {
    "error": {
        "code": 403,
        "message": "Generative Language API has not been used in project 1 before or it is disabled.",
        "status": "PERMISSION_DENIED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED"}
        ],
    }
}
GOOGLE_MODEL = {
    "error": {
        "code": 404,
        "message": "models/gemini-3.5-flash is not found for API version v1beta",
        "status": "NOT_FOUND",
    }
}
BEDROCK_ACCESS = {"message": "You don't have access to the model with the specified model ID."}
BEDROCK_PROFILE = {
    "message": (
        "Invocation of model ID anthropic.claude-sonnet-4-5-v1:0 with on-demand throughput isn\u2019t supported. Retry "
        "your request with the ID or ARN of an inference profile that contains this model."
    )
}
BEDROCK_TOKEN = {"message": "The security token included in the request is expired"}


@pytest.mark.parametrize(
    ("row", "status", "body", "kind", "says"),
    [
        ("google", 400, GOOGLE_KEY, ProviderAuthError, "refused the key"),
        ("google", 400, GOOGLE_REGION, APIError, "choose another provider"),
        ("google", 403, GOOGLE_DISABLED, APIError, "Enable the API"),
        ("google", 404, GOOGLE_MODEL, APIError, "codeloop models google"),
        ("bedrock", 403, BEDROCK_ACCESS, APIError, "may not use this model"),
        ("bedrock", 400, BEDROCK_PROFILE, APIError, "with a region in front"),
        ("bedrock", 403, BEDROCK_TOKEN, ProviderAuthError, "refused the key"),
    ],
)
async def test_a_refusal_says_what_to_do(
    row: str, status: int, body: Any, kind: Any, says: str
) -> None:
    headers = {"x-amzn-requestid": "b0c1"}
    async with ModelServer(
        [Answer(status=status, body=json.dumps(body), headers=headers)]
    ) as server:
        got = await send_request(ADAPTER_ROWS[row].open(server.url))
    assert isinstance(got.end.error, kind)
    assert says in got.message
    assert "request b0c1" in got.message
    assert not isinstance(got.end.error, APIError) or not got.end.error.data.is_retryable


async def test_a_rate_that_speaks_of_billing_is_tried_again_when_google_says_so() -> None:
    async with ModelServer([Answer(status=429, body=json.dumps(GOOGLE_RATE))]) as server:
        got = await send_request(ADAPTER_ROWS["google"].open(server.url))
    assert isinstance(got.end.error, APIError)
    assert got.end.error.data.is_retryable
    assert read_wait(got.end.error.data.response_headers or {}, 0) == 34


@pytest.mark.parametrize(
    ("row", "events", "says"),
    [
        ("google", [{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}], "rules prohibit"),
        (
            "google",
            [{"candidates": [{"finishReason": "SAFETY", "content": {"parts": []}}]}],
            "safety filter",
        ),
        ("google", [{"candidates": [{"finishReason": "RECITATION"}]}], "others own"),
        ("bedrock", [{"messageStop": {"stopReason": "guardrail_intervened"}}], "guardrail"),
    ],
)
async def test_a_filter_is_named_and_not_tried_again(
    row: str, events: list[Any], says: str
) -> None:
    async with ModelServer([Answer(events=tuple(map(json.dumps, events)))]) as server:
        got = await send_request(ADAPTER_ROWS[row].open(server.url))
    assert isinstance(got.end.error, APIError)
    assert not got.end.error.data.is_retryable
    assert says in got.message
    assert "Ask in other words" in got.message


@pytest.mark.parametrize(
    ("row", "event", "status"),
    [
        ("google", {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, 500),
        (
            "google",
            {
                "error": {
                    "code": 503,
                    "message": "The model is overloaded.",
                    "status": "UNAVAILABLE",
                }
            },
            503,
        ),
        (
            "interactions",
            {"event_type": "error", "error": {"code": "503", "message": "overloaded"}},
            503,
        ),
        (
            "bedrock",
            {"exception": {"type": "throttlingException", "message": "Too many tokens"}},
            429,
        ),
        (
            "bedrock",
            {"exception": {"type": "modelStreamErrorException", "message": "Try again"}},
            500,
        ),
        ("bedrock", {"messageStop": {"stopReason": "malformed_tool_use"}}, 500),
    ],
)
async def test_what_another_try_may_avoid_can_be_tried_again(
    row: str, event: Any, status: int
) -> None:
    async with ModelServer([Answer(events=(json.dumps(event),))]) as server:
        got = await send_request(ADAPTER_ROWS[row].open(server.url))
    assert isinstance(got.end.error, APIError)
    assert (got.end.error.data.status_code, got.end.error.data.is_retryable) == (status, True)
