"""Providers, models and keys over the operations."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.app.models.open_models import OpenModels, SingleModel
from codeloop.app.models.provider_list import ProviderList
from codeloop.app.project import Project, open_project
from codeloop.app.settings import Startup
from codeloop.client.local import LocalClient
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.vendors import LOCAL_SERVERS, LocalServer
from codeloop.model.credentials.store import Credentials
from codeloop.model.providers import Providers
from codeloop.model.testing.replay import ScriptedModel
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.providers import (
    AUTH_REMOVE,
    AUTH_SET,
    CONFIG_PROVIDERS,
    PROVIDER_AUTH,
    PROVIDER_LIST,
    ApiAuth,
    KnownProviders,
    OAuth,
    ProviderId,
    SetAuth,
    UsableProviders,
)
from codeloop.schema.config import Config
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import KEY_LENGTH
from codeloop.schema.operation import NoArguments
from tests.model.local_server import http, serving
from tests.server.support.serving import served
from tests.support.scripted_project import make_startup

KEY = "sk-acme-0123456789abcd"
NO_LOCAL: Any = {"disabled_providers": [server.id for server in LOCAL_SERVERS]}
"""What listens on this machine is none of these tests' business."""


class Opened:
    """A project on the real provider table."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.client = LocalClient(project)

    async def usable(self) -> UsableProviders:
        return await self.client.call(CONFIG_PROVIDERS, NoArguments())

    async def known(self) -> KnownProviders:
        return await self.client.call(PROVIDER_LIST, NoArguments())

    async def store(self, provider_id: str, auth: Any) -> bool:
        return await self.client.call(AUTH_SET, SetAuth(provider_id=provider_id, auth=auth))


@asynccontextmanager
async def opened(
    tmp_path: Path, models: SingleModel | None = None, **settings: Any
) -> AsyncGenerator[Opened]:
    """Open a project; names in capitals are variables of its environment,
    the others are configured.
    """
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    variables = {name: settings.pop(name) for name in list(settings) if name.isupper()}
    plain = make_startup(tmp_path / "home", work, **NO_LOCAL, **settings)
    environment = {**plain.environment, **variables}
    project = await open_project(
        Startup(directory=work, environment=environment, settings=plain.settings), models
    )
    try:
        yield Opened(project)
    finally:
        await project.close()


async def refused(wait: Any) -> str:
    with pytest.raises(CodeloopError) as raised:
        await wait
    return str(raised.value)


@pytest.mark.slow
async def test_without_a_key_nothing_is_usable_and_everything_is_known(tmp_path: Path) -> None:
    async with opened(tmp_path) as it:
        assert await it.usable() == UsableProviders(providers=[], default={})
        known = await it.known()
    assert known.connected == []
    assert len(known.all) >= len(Catalog().list_providers()) - len(LOCAL_SERVERS)
    assert {provider.source for provider in known.all} == {"custom"}
    by_id = {provider.id: provider for provider in known.all}
    model = by_id["anthropic"].models[known.default["anthropic"]]
    assert (model.provider_id, model.api.url) == ("anthropic", "https://api.anthropic.com/v1")
    assert model.limit.context > 100_000
    assert (model.capabilities.toolcall, model.capabilities.input.text, model.status) == (
        True,
        True,
        "active",
    )


@pytest.mark.slow
async def test_a_key_makes_its_provider_usable_and_is_not_shown(tmp_path: Path) -> None:
    acme = {
        "options": {
            "baseURL": "https://acme.example/v1",
            "apiKey": KEY,
            "timeout": 5,
            "headers": {"x-key": KEY},
        },
        "models": {
            "m": {
                "name": "M",
                "cost": {"input": 1, "output": 2},
                "headers": {"x": KEY},
                "id": "real-m",
            }
        },
    }
    async with opened(tmp_path, OPENAI_API_KEY=KEY, provider={"acme": acme}) as it:
        it.project.providers.credentials.store_key("xai", KEY, "https://api.x.ai/v1")
        usable, known = await it.usable(), await it.known()
    assert {provider.id: provider.source for provider in usable.providers} == {
        "acme": "config",
        "openai": "env",
        "xai": "api",
    }
    assert set(known.connected) == {"acme", "openai", "xai"}
    assert usable.default["acme"] == "m"
    listed = next(provider for provider in usable.providers if provider.id == "acme")
    assert listed.options == {"baseURL": "https://acme.example/v1", "timeout": 5}
    shown = listed.models["m"]
    assert (shown.id, shown.api.id, shown.name, shown.cost.output, shown.headers) == (
        "m",
        "real-m",
        "M",
        2.0,
        {},
    )
    for answer in (usable, known):
        assert KEY not in msgspec.json.encode(answer).decode()


@pytest.mark.slow
async def test_models_that_we_cannot_speak_to_are_known_but_not_usable(tmp_path: Path) -> None:
    acme = {
        "npm": "@other/protocol",
        "options": {"baseURL": "https://acme.example", "apiKey": KEY},
        "models": {"m": {}},
    }
    async with opened(tmp_path, provider={"acme": acme}) as it:
        assert [each.provider.id for each in it.project.providers.list_usable()] == ["acme"]
        assert (await it.usable()).providers == []
        known = await it.known()
        assert known.connected == []
        assert [list(provider.models) for provider in known.all if provider.id == "acme"] == [["m"]]


async def test_the_provider_of_the_model_that_is_used_by_default_comes_first(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, OPENAI_API_KEY=KEY, XAI_API_KEY=KEY) as it:
        assert [provider.id for provider in (await it.usable()).providers] == ["openai", "xai"]
        other = [
            name
            for name in (await it.usable()).providers[1].models
            if name != (await it.usable()).default["xai"]
        ]
    async with opened(tmp_path, OPENAI_API_KEY=KEY, XAI_API_KEY=KEY, model=f"xai/{other[0]}") as it:
        usable = await it.usable()
        assert [provider.id for provider in usable.providers] == ["xai", "openai"]
        assert usable.default["xai"] == other[0]


@pytest.mark.slow
async def test_a_model_that_stands_in_for_all_is_listed_first(tmp_path: Path) -> None:
    async with opened(tmp_path, SingleModel(ScriptedModel([])), OPENAI_API_KEY=KEY) as it:
        usable = await it.usable()
        assert [provider.id for provider in usable.providers] == ["scripted", "openai"]
        assert usable.default["scripted"] == "script"
        known = await it.known()
        assert known.connected == ["scripted", "openai"]
        assert "scripted" in {provider.id for provider in known.all}


async def test_a_client_can_drive_a_scripted_server_with_what_is_listed(tmp_path: Path) -> None:
    async with served(tmp_path, [ScriptedAnswer(text="Done.")]) as it:
        listed = (await it.get("/config/providers"))["default"]
        provider, model = next(iter(listed.items()))
        chosen = {"providerID": provider, "modelID": model}
        parts = [{"type": "text", "text": "go"}]
        answer = await it.post(
            f"/session/{await it.session()}/message", {"parts": parts, "model": chosen}
        )
        assert (answer["info"]["modelID"], answer["parts"][1]["text"]) == ("script", "Done.")


@pytest.mark.slow
async def test_a_server_on_this_machine_is_listed_when_it_answers(tmp_path: Path) -> None:
    body = json.dumps({"data": [{"id": "nomic-embed"}, {"id": "qwen3-coder:30b"}]}).encode()
    async with serving(http(body)) as (url, _):
        local = [
            LocalServer("here", "Here", f"{url}/v1"),
            LocalServer("gone", "Gone", "http://127.0.0.1:1/v1"),
        ]
        table = Providers(Config(), Catalog(), Credentials(tmp_path / "auth.json"), {}, local)
        listing = ProviderList(table, OpenModels(table))
        usable, known = await listing.list_usable(), await listing.list_known()
    assert [(provider.id, list(provider.models)) for provider in usable.providers] == [
        ("here", ["qwen3-coder:30b", "nomic-embed"])
    ]
    assert usable.default == {"here": "qwen3-coder:30b"}
    assert known.connected == ["here"]
    assert [len(provider.models) for provider in known.all if provider.id in {"here", "gone"}] == [
        2,
        0,
    ]


async def test_a_stored_key_is_bound_to_the_providers_own_address_and_can_be_removed(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as it:
        assert await it.store("openai", ApiAuth(key=f" {KEY}\n")) is True
        file = it.project.settings.paths.credentials_file
        assert json.loads(file.read_text()) == {
            "openai": {"type": "api", "key": KEY, "origin": "https://api.openai.com"}
        }
        assert file.stat().st_mode & 0o777 == 0o600
        assert [provider.id for provider in (await it.usable()).providers] == ["openai"]
        assert await it.client.call(AUTH_REMOVE, ProviderId(provider_id="openai")) is True
        assert (await it.usable()).providers == []
        assert await it.client.call(AUTH_REMOVE, ProviderId(provider_id="openai")) is True


async def test_a_model_is_opened_anew_when_its_key_has_changed(tmp_path: Path) -> None:
    async with opened(tmp_path) as it:
        await it.store("openai", ApiAuth(key=KEY))
        ref = f"openai/{(await it.usable()).default['openai']}"
        first = it.project.models.open(ref)
        assert it.project.models.open(ref) is first
        await it.store("openai", ApiAuth(key=KEY + "x"))
        assert it.project.models.open(ref) is not first


@pytest.mark.parametrize(
    "key", ["", " ", "two words", "schlüssel-ü", "a\x1bb", "x" * (KEY_LENGTH.value + 1)]
)
async def test_what_is_no_key_is_not_stored(tmp_path: Path, key: str) -> None:
    async with opened(tmp_path) as it:
        assert "not a valid key" in await refused(it.store("openai", ApiAuth(key=key)))
        assert not it.project.settings.paths.credentials_file.exists()


async def test_other_credentials_and_unknown_providers_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as it:
        assert "No plugin signs in at openai" in await refused(it.store("openai", OAuth()))
        assert "no provider `nobody`" in await refused(it.store("nobody", ApiAuth(key=KEY)))
        assert "no provider `nobody`" in await refused(
            it.client.call(AUTH_REMOVE, ProviderId(provider_id="nobody"))
        )
        assert "--base-url" in await refused(it.store("azure", ApiAuth(key=KEY)))


async def test_over_http_each_refusal_has_its_status(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        for provider, body, status in (
            ("openai", {"type": "api", "key": KEY}, 200),
            ("openai", {"type": "api", "key": ""}, 400),
            ("openai", {"type": "oauth", "refresh": "r", "access": "a", "expires": 1}, 400),
            ("openai", {"type": "other"}, 400),
            ("openai", {"key": KEY}, 400),
            ("nobody", {"type": "api", "key": KEY}, 404),
            ("..%2F..%2Fx", {"type": "api", "key": KEY}, 404),
        ):
            answer = await it.http.put(f"/auth/{provider}", json=body)
            assert answer.status_code == status, answer.text
            assert KEY not in answer.text
        assert (await it.http.delete("/auth/openai")).json() is True
        assert (await it.http.delete("/auth/nobody")).status_code == 404


async def test_a_key_is_asked_for_where_it_is_known_what_it_is_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as it:
        methods = await it.client.call(PROVIDER_AUTH, NoArguments())
    assert [(method.type, method.label) for method in methods["anthropic"]] == [("api", "API key")]
    assert [[prompt["key"] for prompt in each.prompts or ()] for each in methods["azure"]] == [
        ["resourceName", "key", "deployment"]
    ]
    assert "google-vertex" not in methods
