"""Tests of increasing a model's context at a local server, once and visibly."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.local_servers import discover_servers
from codeloop.model.catalog.vendors import LocalServer
from codeloop.model.chat import RetryScheduled
from codeloop.model.credentials.store import Credentials
from codeloop.model.local.context_length import find_context_increase, name_derived_model
from codeloop.model.providers import Providers
from codeloop.schema.config import Config
from codeloop.schema.errors import APIError
from tests.model.local.test_local_model import TOOLS
from tests.support.http_service import run_http_service
from tests.support.local_servers import LmStudioServer, OllamaServer
from tests.support.models import CollectedAnswer, no_proxies, send_request

__all__ = ["no_proxies"]
NAMES = {OllamaServer: ("ollama", "qwen3:8b"), LmStudioServer: ("lmstudio", "qwen/qwen3-8b")}


@asynccontextmanager
async def opened(
    tmp_path: Path, server: OllamaServer | LmStudioServer, limit: dict[str, int] | None = None
) -> AsyncGenerator[Any]:
    """Open the server's model, with this `limit` in the configuration."""
    provider, model = NAMES[type(server)]
    models = {model: {"limit": limit}} if limit else {}
    async with run_http_service(server.answer) as cloud:
        row = {"options": {"baseURL": f"{cloud.url}/v1"}, "models": models}
        config = msgspec.convert({"provider": {provider: row}}, Config)
        providers = Providers(config, Catalog(), Credentials(tmp_path / "auth.json"), {})
        yield providers.open_model(f"{provider}/{model}")


def notices(*answers: CollectedAnswer) -> list[str]:
    """Return the notice that precedes an answer."""
    return [
        event.message
        for got in answers
        for event in got.events
        if isinstance(event, RetryScheduled)
    ]


async def test_ollama_gets_a_model_of_its_own_with_more_context(tmp_path: Path) -> None:
    server = OllamaServer()
    async with opened(tmp_path, server) as model:
        one, two = await asyncio.gather(
            send_request(model, tools=TOOLS), send_request(model, tools=TOOLS)
        )
        assert (one.text, two.text) == ("ready", "ready")
        assert model.info.limits.context == 32_768
    assert server.models == {"qwen3:8b": None, "codeloop/qwen3:8b-32768": 32_768}
    assert server.asked == ["codeloop/qwen3:8b-32768"] * 2
    assert notices(one, two) == [
        "ollama/qwen3:8b is loaded with a context of 4,096 tokens; it is now being loaded with 32,768."
    ]


async def test_lmstudio_loads_the_model_anew_in_place_of_what_is_loaded(tmp_path: Path) -> None:
    server = LmStudioServer()
    async with opened(tmp_path, server) as model:
        assert (await send_request(model, tools=TOOLS)).text == "ready"
    assert server.instances == {server.key: 32_768}
    assert server.asked == [(server.key, 32_768)]


async def test_lmstudio_loads_a_model_that_is_not_loaded_with_enough(tmp_path: Path) -> None:
    server = LmStudioServer(instances={}, most=16_384)
    async with opened(tmp_path, server) as model:
        assert (await send_request(model, tools=TOOLS)).text == "ready"
    assert server.instances == {server.key: 16_384}


async def test_the_configuration_says_how_much_context(tmp_path: Path) -> None:
    limit = {"context": 20_000, "output": 4_000}
    ollama, lmstudio = OllamaServer(), LmStudioServer()
    for server in (ollama, lmstudio):
        async with opened(tmp_path, server, limit) as model:
            await send_request(model)
    assert ollama.loaded == {"codeloop/qwen3:8b-20000": 20_000}
    assert lmstudio.instances == {lmstudio.key: 20_000}


async def test_a_context_that_is_enough_or_wanted_stays_as_it_is(tmp_path: Path) -> None:
    enough, wanted = OllamaServer({"qwen3:8b": 24_000}), LmStudioServer()
    async with opened(tmp_path, enough) as model:
        assert notices(await send_request(model)) == []
    async with opened(tmp_path, wanted, {"context": 4_096}) as model:
        assert notices(await send_request(model)) == []
    assert enough.asked == ["qwen3:8b"]
    assert wanted.asked == [(wanted.key, 4_096)]


async def test_where_there_is_no_room_the_old_context_is_kept_and_the_remedy_said(
    tmp_path: Path,
) -> None:
    server = LmStudioServer(room=4_096)
    async with opened(tmp_path, server) as model:
        got = await send_request(model, tools=TOOLS)
        await send_request(model, tools=TOOLS)
    assert isinstance(got.end.error, APIError)
    assert "lms load qwen/qwen3-8b --context-length 32768" in got.message
    assert server.instances == {server.key: 4_096}
    refused = OllamaServer(can_create=False)
    async with opened(tmp_path, refused) as model:
        assert "OLLAMA_CONTEXT_LENGTH=32768" in (await send_request(model, tools=TOOLS)).message


async def test_models_that_were_derived_are_not_offered(tmp_path: Path) -> None:
    async with run_http_service(
        OllamaServer({"qwen3:8b": None, "codeloop/qwen3:8b-32768": 32_768}).answer
    ) as cloud:
        (found,) = await discover_servers([LocalServer("ollama", "Ollama", f"{cloud.url}/v1")])
    assert found.models == ("qwen3:8b",)


@pytest.mark.parametrize(
    ("model", "derived"),
    [
        ("qwen3", "codeloop/qwen3:latest-9"),
        ("qwen3:8b", "codeloop/qwen3:8b-9"),
        ("hf.co/unsloth/Qwen3-GGUF:Q4_K_M", "codeloop/hf.co-unsloth-Qwen3-GGUF:Q4_K_M-9"),
        ("host:5000/team/qwen3", "codeloop/host-5000-team-qwen3:latest-9"),
    ],
)
def test_a_derived_model_has_a_name_that_says_of_what(model: str, derived: str) -> None:
    assert name_derived_model(model, 9) == derived


def test_other_servers_have_the_context_that_they_were_started_with() -> None:
    assert find_context_increase("llama.cpp", "http://127.0.0.1:8080/v1") is None
    assert find_context_increase("vllm", "http://127.0.0.1:8000/v1") is None
