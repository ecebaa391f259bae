"""A server of the person's own is asked for its models, and put into their configuration."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codeloop.app.app import App
from codeloop.client.directory_client import DirectoryClient
from codeloop.schema.api.providers import (
    CONFIG_PROVIDERS,
    PROVIDER_ADD,
    PROVIDER_MODELS,
    AddProvider,
    ServerAddress,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from tests.model.local_server import http, serving
from tests.support.model_server import Answer, ModelServer
from tests.support.scripted_project import make_startup


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncGenerator[DirectoryClient]:
    (tmp_path / "work").mkdir()
    app = App(make_startup(tmp_path / "home", tmp_path / "work"))
    try:
        yield DirectoryClient(app, tmp_path / "work")
    finally:
        await app.close()


async def test_a_server_lists_its_models_at_the_address_that_was_meant(tmp_path: Path) -> None:
    async with (
        ModelServer([Answer()], models=("coder", "small"), key="sk-own") as server,
        opened(tmp_path) as client,
    ):

        async def ask(url: str, key: str = "sk-own") -> Any:
            found = await client.call(PROVIDER_MODELS, ServerAddress(base_url=url, key=key))
            return found.base_url, found.models, found.needs_key

        for url in (
            server.url,
            f"127.0.0.1:{server.port}",
            f"{server.url}/chat/completions",
            f"{server.url}/",
        ):
            base, *rest = await ask(url)
            assert (base, rest) == (server.url, [["coder", "small"], False])
        for key in ("", "sk-wrong"):
            assert await ask(server.url, key) == (server.url, [], True)


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"no", "404 Not Found"), (b"{}", "200 OK"), (b'{"data": [{"id": ""}]}', "200 OK")],
)
async def test_a_server_that_lists_no_models_can_be_used(
    tmp_path: Path, body: bytes, status: str
) -> None:
    async with serving(http(body, status)) as (url, _), opened(tmp_path) as client:
        found = await client.call(PROVIDER_MODELS, ServerAddress(base_url=f"{url}/v1"))
    assert (found.base_url, found.models, found.needs_key) == (f"{url}/v1", [], False)


async def test_what_is_no_server_is_refused_with_what_to_do(tmp_path: Path) -> None:
    moved = b"HTTP/1.1 301 Moved\r\nLocation: https://user:pw@there.example/v1?key=1\r\nContent-Length: 0\r\n\r\n"
    async with opened(tmp_path) as client, serving(moved) as (url, _):
        for address, words in (
            (url, "redirects to https://there.example/v1. Enter"),
            ("http://127.0.0.1:1/v1", "Is the server running?"),
            ("ftp://a.example", "not a valid base URL"),
            ("http://u:p@a.example", "not a valid base URL"),
            ("", "not a valid base URL"),
        ):
            with pytest.raises(OperationError) as raised:
                await client.call(PROVIDER_MODELS, ServerAddress(base_url=address))
            assert words in str(raised.value)
            assert "pw" not in str(raised.value)


async def test_an_added_server_is_usable_at_once_and_its_key_is_stored_for_it(
    tmp_path: Path,
) -> None:
    own = tmp_path / "home" / "config" / "codeloop.json"
    own.parent.mkdir(parents=True)
    own.write_text('{\n  // mine\n  "username": "ada"\n}\n')
    wanted = AddProvider(
        provider_id="mine",
        name="Mine",
        base_url="http://127.0.0.1:8/v1/",
        models=["a/b", "c"],
        key="sk-own",
    )
    async with opened(tmp_path) as client:
        assert await client.call(PROVIDER_ADD, wanted)
        usable = await client.call(CONFIG_PROVIDERS, NoArguments())
        mine = next(each for each in usable.providers if each.id == "mine")
        assert (mine.name, mine.source, list(mine.models)) == ("Mine", "api", ["a/b", "c"])
        with pytest.raises(OperationError, match="already"):
            await client.call(PROVIDER_ADD, wanted)
    written = own.read_text()
    assert "// mine" in written
    assert json.loads(written.replace("// mine", ""))["provider"] == {
        "mine": {
            "name": "Mine",
            "options": {"baseURL": "http://127.0.0.1:8/v1"},
            "models": {"a/b": {}, "c": {}},
        }
    }
    assert "sk-own" not in written
    stored = json.loads((tmp_path / "home" / "data" / "auth.json").read_text())
    assert stored["mine"]["origin"] == "http://127.0.0.1:8"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"provider_id": "../x"}, "lower-case letters"),
        ({"provider_id": "openai"}, "already"),
        ({"models": []}, "at least one model"),
        ({"models": ["a\nb"]}, "at least one model"),
        ({"base_url": "nonsense"}, "not a valid base URL"),
        ({"key": "two words"}, "not a valid key"),
    ],
)
async def test_what_can_not_be_a_server_is_not_written(
    tmp_path: Path, changed: Any, words: str
) -> None:
    given = {
        "provider_id": "mine",
        "name": "Mine",
        "base_url": "http://127.0.0.1:8/v1",
        "models": ["m"],
    } | changed
    async with opened(tmp_path) as client:
        with pytest.raises(OperationError, match=words):
            await client.call(PROVIDER_ADD, AddProvider(**given))
    assert not (tmp_path / "home" / "config" / "codeloop.json").exists()
