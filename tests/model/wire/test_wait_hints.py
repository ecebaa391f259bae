"""What a service says about when to ask it again is understood in every form,
in headers and in bodies.
"""

import json
import time
from email.utils import formatdate
from typing import Any

import pytest

from codeloop.model.wire.error_patterns import extract_message, find_retry_after
from codeloop.model.wire.rate_limits import parse_retry_after

SOON = 90


def read_wait(headers: dict[str, str], body: Any = None) -> float | None:
    """Return the wait of an answer with the status 429."""
    text = json.dumps(body)
    return parse_retry_after(
        {**find_retry_after(body, extract_message(text, body)), **headers}, is_limited=True
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "1m30s"}, 90),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "2500", "retry-after": "60"}, 2.5),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-reset-tokens": "20ms", "x-ratelimit-remaining-tokens": "0"}, 0.02),
        ({"x-ratelimit-reset-tokens": "9s", "x-ratelimit-remaining-tokens": "400"}, None),
        ({"x-ratelimit-reset-requests": "5s", "x-ratelimit-reset-tokens": "8"}, 8),
        ({"x-ratelimit-reset": "12"}, 12),
        ({"ratelimit-reset": "12"}, 12),
        ({}, None),
    ],
)
def test_headers_name_the_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert read_wait(headers) == seconds


def test_headers_name_the_moment() -> None:
    then = time.time() + SOON
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(then + 1))
    for headers in (
        {"retry-after": formatdate(then + 1, usegmt=True)},
        {"retry-after": iso},
        {"anthropic-ratelimit-requests-reset": iso},
        {"x-ratelimit-reset": str(int(then + 1))},
        {"x-ratelimit-reset": str(int((then + 1) * 1000))},
    ):
        wait = read_wait(headers)
        # On a busy machine this test itself may take a while.
        assert wait is not None, headers
        assert SOON / 2 < wait <= SOON + 1, headers
    assert read_wait({"retry-after": formatdate(time.time() - SOON, usegmt=True)}) == 0


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (
            {
                "error": {
                    "message": "Rate limit reached. Please try again in 1m30.5s. Visit the page"
                }
            },
            90.5,
        ),
        ({"error": {"message": "Please try again in 20ms."}}, 0.02),
        ({"error": {"message": "Please retry after 12 seconds."}}, 12),
        ({"error": {"message": "Too many requests, wait 2 minutes"}}, 120),
        ({"message": "retry in: 3 sec"}, 3),
        ({"error": {"message": "slow down", "retry_after": 5}}, 5),
        ({"retry_after_ms": 1500, "message": "slow down"}, 1.5),
        ({"retryAfter": "4", "error": "slow down"}, 4),
        ({"error": {"message": "x", "metadata": {"headers": {"X-RateLimit-Reset": "9"}}}}, 9),
        ({"error": {"details": [{"retryDelay": "34s"}]}}, 34),
        ({"error": {"message": "try again later"}}, None),
        ({"error": "Add 5 minutes of work and retry"}, None),
        ("retry in 5s", 5),
        ([], None),
    ],
)
def test_bodies_name_the_wait(body: Any, seconds: float | None) -> None:
    assert read_wait({}, body) == seconds


def test_a_header_is_more_precise_than_a_body() -> None:
    assert read_wait({"retry-after": "3"}, {"error": {"message": "Try again in 20s"}}) == 3
