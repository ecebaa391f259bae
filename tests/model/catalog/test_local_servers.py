"""Tests of discovering local servers: those that answer are found,
all others cost at most the deadline.
"""

import asyncio
import time

import msgspec
import pytest

from codeloop.model.catalog import local_servers
from codeloop.model.catalog.local_servers import discover_servers, find_listening_urls
from codeloop.model.catalog.model_choice import choose_local_model
from codeloop.model.catalog.vendors import LocalServer
from codeloop.schema.limits import DISCOVER_TIME
from codeloop.schema.wire import replace
from tests.model.local_server import http, serving

MODELS = msgspec.json.encode(
    {"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "qwen3-coder:30b"}]}
)


async def test_a_server_that_lists_models_is_found_in_order() -> None:
    async with serving(http(MODELS)) as (one, heads), serving(http(b'{"data": null}')) as (two, _):
        found = await discover_servers(
            [LocalServer("a", "A", f"{one}/v1"), LocalServer("b", "B", f"{two}/v1")]
        )
    assert [(row.server.id, row.models) for row in found] == [
        ("a", ("nomic-embed-text", "qwen3-coder:30b")),
        ("b", ()),
    ]
    assert heads[0].startswith(b"GET /v1/models HTTP/1.0\r\n")
    assert b"authorization" not in heads[0].lower()


async def test_one_that_hangs_costs_the_deadline_and_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_servers, "DISCOVER_TIME", replace(DISCOVER_TIME, value=500))
    async with (
        serving(b"", hang=True) as (slow, _),
        serving(http(MODELS)) as (quick, _),
        asyncio.timeout(30),
    ):
        found = await discover_servers(
            [LocalServer("slow", "", slow), LocalServer("quick", "", quick)]
        )
    assert [row.server.id for row in found] == ["quick"]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        http(b"<html>hello</html>"),
        http(b'{"data": 3}'),
        http(b'{"models": []}'),
        http(MODELS, "404 Not Found"),
        http(b"\xff" * 100),
        b"HTTP/1.1\r\n\r\n" + MODELS,
        http(b" " * 3_000_000),
    ],
)
async def test_something_else_that_listens_there_is_left_out(answer: bytes) -> None:
    async with serving(answer) as (url, _):
        assert await discover_servers([LocalServer("x", "X", url)]) == []


async def test_nobody_listening_is_no_error() -> None:
    assert await discover_servers([LocalServer("x", "X", "http://127.0.0.1:9/v1")]) == []
    assert await discover_servers([]) == []


def test_the_model_that_writes_code_is_chosen_and_none_that_can_not_converse() -> None:
    assert (
        choose_local_model(["llama3:8b", "nomic-embed-text", "qwen3-coder:30b"])
        == "qwen3-coder:30b"
    )
    assert choose_local_model(["nomic-embed-text", "my-own"]) == "my-own"
    assert choose_local_model(["nomic-embed-text", "bge-m3"]) is None
    assert choose_local_model([]) is None


async def test_a_server_counts_though_this_process_stands_still_while_it_connects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_servers, "DISCOVER_TIME", DISCOVER_TIME)
    loop = asyncio.get_running_loop()
    async with serving(b"", hang=True) as (url, _):
        loop.call_soon(lambda: loop.call_soon(time.sleep, 3 * DISCOVER_TIME.seconds))
        assert await find_listening_urls([url, "http://127.0.0.1:9/v1"]) == {url}
