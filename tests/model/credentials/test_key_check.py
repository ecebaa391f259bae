"""Tests of checking a key by the service's list of models."""

import json

import pytest

from codeloop.model.credentials.key_check import KeyCheck, check_key
from tests.model.local_server import http, serving
from tests.support.model_server import ModelServer
from tests.support.models import no_proxies

__all__ = ["no_proxies"]
KEY = "sk-test-0123456789abcdef"
HEADERS = {"authorization": f"Bearer {KEY}"}


async def test_a_key_is_accepted_where_the_service_refuses_to_answer_without_one() -> None:
    async with ModelServer([], key=KEY) as server:
        assert await check_key("acme", server.url, HEADERS) == KeyCheck("accepted")


async def test_a_wrong_key_is_refused_in_the_services_words_without_the_key() -> None:
    async with ModelServer([], key="another") as server:
        found = await check_key("acme", server.url, HEADERS)
    assert found == KeyCheck("refused", "HTTP 401: invalid key: [hidden]")


@pytest.mark.parametrize("before", ["x" * 390, ""])
@pytest.mark.parametrize("is_json", [True, False])
async def test_not_even_the_beginning_of_a_key_is_shown(before: str, *, is_json: bool) -> None:
    message = before[: 390 if is_json else 290] + KEY
    body = json.dumps({"error": {"message": message}}) if is_json else message
    async with serving(http(body.encode(), "401 Unauthorized")) as (url, _):
        found = await check_key("acme", url, {**HEADERS, "x-empty": ""})
    assert found == KeyCheck("refused", f"HTTP 401: {message.removesuffix(KEY)}[hidden]")


async def test_a_refusal_that_is_nested_too_deeply_is_shown_as_text() -> None:
    async with serving(http(b"[" * 3000 + b"]" * 3000, "401 Unauthorized")) as (url, _):
        found = await check_key("acme", url, HEADERS)
    assert found.state == "refused"


async def test_a_service_that_answers_everybody_proves_nothing() -> None:
    async with ModelServer([]) as server:
        assert (await check_key("acme", server.url, HEADERS)).state == "unknown"


async def test_an_invalid_key_may_be_a_bad_request() -> None:
    body = json.dumps(
        {"error": {"message": "API key not valid. Please pass a valid API key.", "code": 400}}
    ).encode()
    async with serving(http(body, "400 Bad Request")) as (url, _):
        assert (await check_key("google", url, HEADERS)).state == "refused"


async def test_the_query_of_the_base_url_comes_after_the_path() -> None:
    async with serving(http(b"{}", "401 Unauthorized")) as (url, heads):
        assert (await check_key("acme", f"{url}/v1?version=1", HEADERS)).state == "refused"
    assert heads[0].startswith(b"GET /v1/models?version=1 ")


async def test_where_the_list_is_public_the_key_itself_is_asked_about() -> None:
    async with serving(http(b"{}", "401 Unauthorized")) as (url, heads):
        assert (await check_key("openrouter", f"{url}/api/v1", HEADERS)).state == "refused"
    assert heads[0].startswith(b"GET /api/v1/key ")


async def test_a_service_that_cannot_be_reached_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (await check_key("acme", "http://127.0.0.1:9/v1", HEADERS)).state == "unknown"
    monkeypatch.setenv("CODELOOP_OFFLINE", "1")
    found = await check_key("acme", "https://api.example.com/v1", HEADERS)
    assert found.state == "unknown"
    assert "offline" in found.reason
