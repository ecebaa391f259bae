"""Tests of offline mode: which hosts are reachable, and that nothing is sent to others."""

from typing import Any

import pytest

from codeloop.net.hosts import OFFLINE_VARIABLE, is_offline, is_reachable_offline
from codeloop.schema.errors import APIError
from tests.support.answers import Answer
from tests.support.model_server import ModelServer


@pytest.mark.parametrize(
    ("host", "is_reached"),
    [
        ("localhost", True),
        ("app.localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("[fe80::1]", True),
        ("192.168.1.20", True),
        ("10.0.0.7", True),
        ("ollama", True),
        ("printer.local", True),
        ("git.corp.internal", True),
        ("api.example.com", False),
        ("localhost.example.com", False),
        ("evil-local", True),
        ("local.example", False),
        ("8.8.8.8", False),
        ("[::ffff:8.8.8.8]", False),
        ("::ffff:10.0.0.7", True),
        ("134744072", False),
        ("0x08080808", False),
        ("2606:4700::1111", False),
    ],
)
def test_only_this_machine_and_private_networks_are_reached(host: str, is_reached: bool) -> None:
    assert is_reachable_offline(host) == is_reached


@pytest.mark.parametrize(
    ("value", "is_on"), [("1", True), ("true", True), ("", False), ("0", False), ("False", False)]
)
def test_the_variable_turns_it_on(value: str, is_on: bool) -> None:
    assert is_offline({OFFLINE_VARIABLE: value}) == is_on


async def test_a_service_elsewhere_is_not_asked_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, openai: Any, asking: Any
) -> None:
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")
    async with ModelServer([Answer(text="by proxy")]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        got = await asking(openai("http://models.example/v1"))
        assert isinstance(got.end.error, APIError)
        assert not got.end.error.data.is_retryable
        assert (
            "models.example:80 was not asked: codeloop is offline (--offline or CODELOOP_OFFLINE). Choose"
            in got.message
        )
        assert not proxy.requests
        assert (await asking(openai(proxy))).text == "by proxy"
