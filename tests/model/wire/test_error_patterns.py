"""Tests of the patterns that tell a full context, an empty account and an unknown model apart."""

from typing import Any

import pytest

from codeloop.model.wire.error_patterns import (
    extract_message,
    find_status,
    is_missing_model,
    is_out_of_credit,
    is_overflow,
    is_wrong_path,
)

OVERFLOWS = [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, context window",
    "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    "Please reduce the length of the messages or completion.",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "the request exceeds the available context size, try increasing it",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "Input is too long for requested model.",
    "Your request exceeded model token limit: 262144",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "prompt too long; exceeded max context length by 12 tokens",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_a_full_context_is_recognised(text: str) -> None:
    assert is_overflow(400, None, text)
    assert not is_overflow(429, None, text)


@pytest.mark.parametrize(
    "text", ["too many tokens per minute", "invalid temperature", "no such tool: context"]
)
def test_other_refusals_are_no_full_context(text: str) -> None:
    assert not is_overflow(400, None, text)


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({"error": {"type": "overloaded_error"}}, 529),
        ({"error": {"code": 429, "message": "x"}}, 429),
        ({"error": {"code": "503"}}, 503),
        ({"type": "error", "error": {"type": "rate_limit_error"}}, 429),
        ([{"error": {"code": 400}}], 400),
        ({"error": "text"}, None),
        ("text", None),
    ],
)
def test_the_status_of_an_error_inside_a_stream(payload: Any, status: int | None) -> None:
    assert find_status(payload) == status


def test_an_empty_account_and_a_missing_model() -> None:
    assert is_out_of_credit(429, {"error": {"code": "insufficient_quota"}}, "")
    assert is_out_of_credit(400, None, "Your credit balance is too low to access the API")
    assert not is_out_of_credit(429, None, "Rate limit reached for requests")
    assert is_missing_model(400, {"error": {"code": "model_not_found"}}, "", "m")
    assert not is_missing_model(400, None, "temperature is not supported", "m")


@pytest.mark.parametrize(
    ("status", "text", "missing", "path"),
    [
        (404, 'model "qwen3" not found, try pulling it first', True, True),
        (404, '{"error": {"type": "not_found_error", "message": "model: qwen3"}}', True, True),
        (404, "404 page not found", False, True),
        (404, "Invalid URL (POST /chat/completions)", False, True),
        (404, '{"detail":"Not Found"}', False, True),
        (404, "", False, True),
        (405, "Method Not Allowed", False, True),
        (None, "Unexpected endpoint or method. (POST /chat/completions)", False, True),
        (400, "qwen3 can't do this", False, False),
    ],
)
def test_a_wrong_path_and_a_missing_model_are_two_things(
    status: int | None, text: str, missing: bool, path: bool
) -> None:
    assert is_missing_model(status, None, text, "qwen3") is missing
    assert is_wrong_path(status, text) is path


@pytest.mark.parametrize(
    ("text", "payload", "expected"),
    [
        ("<html><style>a{}</style><body><h1>Bad\n gateway</h1></body></html>", None, "Bad gateway"),
        ("<HTML><TITLE>503</TITLE>", None, "503"),
        ("", None, "no reason given"),
        ("x", {"error": {"message": "two\nlines"}}, "two lines"),
        ("x", {"detail": [{"msg": "field required"}]}, "field required"),
        ("x", [{"error": {"message": "listed"}}], "listed"),
    ],
)
def test_a_person_reads_one_line(text: str, payload: Any, expected: str) -> None:
    assert extract_message(text, payload) == expected
