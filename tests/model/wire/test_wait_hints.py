"""What a service says about when to ask it again is understood in every form,
in headers and in bodies.
"""

import json
import time
from email.utils import formatdate
from typing import Any

import pytest

from codeloop.model.wire.error_patterns import extract_message
from codeloop.model.wire.stated_wait import find_retry_after
from codeloop.net.wait_hints import read_wait as read_headers

SOON = 90


def read_wait(headers: dict[str, str], body: Any = None) -> float | None:
    """Return the wait of an answer with the status 429."""
    text = json.dumps(body)
    hints = find_retry_after(body, extract_message(text, body))
    return read_headers({**hints, **headers}, time.time(), is_limited=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "1m30s"}, 90),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": '"30"'}, 30),
        ({"retry-after": "7 seconds"}, 7),
        ({"retry-after": "1 hour"}, 3_600),
        ({"retry-after": "7, 12"}, 7),
        ({"retry-after": "7; comment"}, 7),
        ({"retry-after": "PT1M30S"}, 90),
        ({"retry-after": "00:00:30"}, 30),
        ({"retry-after-ms": "nan", "retry-after": "3"}, 3),
        ({"x-ms-retry-after-ms": "4000"}, 4),
        ({"x-ratelimit-reset-requests": "1d2h"}, 93_600),
        ({"x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "20"}, 20),
        ({"x-ratelimit-remaining": "10", "x-ratelimit-reset": "20"}, None),
        (
            {
                "anthropic-ratelimit-unified-status": "rejected",
                "anthropic-ratelimit-unified-reset": "40",
                "anthropic-ratelimit-unified-7d-status": "allowed_warning",
                "anthropic-ratelimit-unified-7d-reset": "400000",
            },
            40,
        ),
        ({"ratelimit": "limit=100, remaining=0, reset=50"}, 50),
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
        {"retry-after": str(int(then + 1))},
    ):
        wait = read_wait(headers)
        # On a busy machine this test itself may take a while.
        assert wait is not None, headers
        assert SOON / 2 < wait <= SOON + 1, headers
    assert read_wait({"retry-after": formatdate(time.time() - SOON, usegmt=True)}) == 0


@pytest.mark.parametrize("offset", [-3_600, 3_600, 86_400])
def test_a_moment_is_one_of_the_services_clock(offset: int) -> None:
    there = int(time.time()) + offset
    date = formatdate(there, usegmt=True)
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(there + 30))
    for headers in (
        {"retry-after": formatdate(there + 30, usegmt=True)},
        {"x-ratelimit-reset": str(there + 30)},
        {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": iso},
    ):
        assert read_wait({"date": date, **headers}) == 30, headers


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
        ({"error": {"details": [{"retryDelay": "600ms"}]}}, 0.6),
        ({"error": {"details": [{"retryDelay": {"seconds": 34, "nanos": 500_000_000}}]}}, 34.5),
        ({"error": {"details": [{"metadata": {"quotaResetDelay": "1h16m0.5s"}}]}}, 4_560.5),
        ({"retry_after": {"seconds": "soon"}}, None),
        ({"retry_after": {"seconds": 3, "nanos": None}}, 3),
        ({"error": {"resets_in_seconds": 3_000, "message": "The limit has been reached"}}, 3_000),
        ({"error": "Model X is loading", "estimated_time": 20.0}, 20),
        ({"error": {"metadata": {"retry_after_seconds": 5}}}, 5),
        ({"errors": [{"retry_after": True, "detail": {"retryAfter": 6}}]}, 6),
        ({"error": {"retry_after": "", "message": "try again in 5s"}}, 5),
        ({"error": {"message": "try again in 2 hours and 5 minutes"}}, 7_500),
        ({"error": {"message": "Please wait 2 minutes and try again"}}, 120),
        ({"error": {"message": "Try again in a minute"}}, 60),
        ({"error": {"message": "try again in 3d4h"}}, 273_600),
        ({"error": {"message": "retry after 30"}}, 30),
        ({"error": {"message": "Your quota will reset after 3h12m"}}, 11_520),
        ({"error": {"message": "Please try your request again in 10 seconds"}}, 10),
        ({"error": {"message": "try again in a moment"}}, None),
        ({"error": {"message": "Retry with at most 5 m tokens"}}, None),
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
