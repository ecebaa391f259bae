"""Tests of the provider table: usable providers, where keys are sent, the default model,
and error messages.
"""

from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from codeloop.app.models.open_models import OpenModels
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.model_choice import choose_default_model
from codeloop.model.catalog.services import find_service
from codeloop.model.catalog.vendors import LocalServer
from codeloop.model.chat import Finished, ModelRequest, TextDelta, TextPiece, UserModelMessage
from codeloop.model.credentials.store import Credentials
from codeloop.model.default_model import NO_MODEL_MESSAGE, choose_default
from codeloop.model.endpoints import make_endpoint
from codeloop.model.errors import (
    ModelUnavailable,
    NoKey,
    NoModel,
    UnknownModel,
    UnsupportedProtocol,
    WrongKeyOrigin,
)
from codeloop.model.provider import Provider
from codeloop.model.providers import Providers
from codeloop.model.usable_models import (
    NO_KEY_REASON,
    UNNAMED_REASON,
    explain_unusable,
    list_offers,
)
from codeloop.net.hosts import is_loopback
from codeloop.schema.config import Config
from codeloop.schema.limits import MODEL_FIRST_BYTE, MODEL_IDLE
from codeloop.schema.provider_config import ProviderConfig
from codeloop.schema.wire import JSON
from tests.model.local_server import http, serving

CATALOG = Catalog()
KEY = "sk-acme-0123456789abcd"


class World:
    """A configuration, stored keys and an environment;
    `providers()` returns the table made from them.
    """

    def __init__(self, folder: Path) -> None:
        self.credentials = Credentials(folder / "auth.json")
        self.environment: dict[str, str] = {}
        self.local: list[LocalServer] = []
        self.config: JSON = {}

    def providers(self) -> Providers:
        config = msgspec.convert(self.config, Config)
        return Providers(config, CATALOG, self.credentials, self.environment, self.local)

    def key(self, provider_id: str) -> str | None:
        return make_endpoint(self.row(provider_id), self.credentials, self.environment).key

    def row(self, provider_id: str) -> Provider:
        return self.providers().get_provider(provider_id)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def sources(world: World) -> dict[str, str]:
    return {usable.provider.id: usable.key_source for usable in world.providers().list_usable()}


def test_without_keys_nothing_is_usable_but_everything_is_listed(world: World) -> None:
    assert sources(world) == {}
    assert len(world.providers().list_enabled()) >= len(CATALOG.list_providers())


def test_each_source_of_a_key_makes_a_provider_usable(world: World) -> None:
    world.environment = {"OPENAI_API_KEY": KEY, "MISTRAL_API_KEY": " "}
    world.credentials.store_key("xai", KEY, "https://api.x.ai/v1")
    world.config = {
        "provider": {
            "groq": {"options": {"apiKey": KEY}},
            "mine": {"options": {"baseURL": "http://127.0.0.1:9999/v1"}, "models": {"m": {}}},
        }
    }
    assert sources(world) == {
        "groq": "configuration",
        "mine": "none",
        "openai": "environment",
        "xai": "credentials",
    }


async def test_a_provider_is_usable_by_a_sign_in_while_a_plugin_sees_to_its_requests(
    world: World,
) -> None:
    world.credentials.store_sign_in("xai", {"access": "a"})
    assert sources(world) == {}
    providers = world.providers()
    providers.list_plugin_providers = lambda: {"xai", "groq"}
    assert [each.provider.id for each in providers.list_usable()] == ["xai"]
    assert explain_unusable(providers, world.row("xai"), set()) == ""
    assert explain_unusable(providers, world.row("groq"), set()) == NO_KEY_REASON
    assert (await choose_default(providers)).startswith("xai/")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "address not known"),
        ({"baseURL": "https://user@mine.example/v1"}, "its configuration is wrong"),
        ({"baseURL": "https://mine.example/v1", "timeout": "soon"}, "its configuration is wrong"),
        ({"baseURL": "https://mine.example/v1"}, ""),
    ],
)
def test_an_invalid_option_is_no_missing_address(options: JSON, reason: str, world: World) -> None:
    world.config = {
        "provider": {"mine": {"options": {"apiKey": KEY, **options}, "models": {"m": {}}}}
    }
    assert explain_unusable(world.providers(), world.row("mine"), set()) == reason


async def test_a_malformed_base_url_is_said_of_its_provider_alone(world: World) -> None:
    world.config = {
        "provider": {
            "mine": {"options": {"apiKey": KEY, "baseURL": "http://[::1/v1"}, "models": {"m": {}}}
        }
    }
    _, reasons = await list_offers(world.providers())
    assert reasons["mine"] == "its configuration is wrong"


def test_switched_off_providers_are_gone_and_named_as_such(world: World) -> None:
    world.environment = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "XAI_API_KEY": KEY}
    world.config = {"enabled_providers": ["openai", "xai"], "disabled_providers": ["xai"]}
    assert set(sources(world)) == {"openai"}
    with pytest.raises(UnknownModel, match="switched off"):
        world.providers().find_model("anthropic/claude-sonnet-5")


def test_a_model_of_the_catalog_with_the_configuration_over_it(world: World) -> None:
    world.config = {
        "provider": {
            "anthropic": {
                "models": {
                    "claude-sonnet-5": {"limit": {"context": 5000}, "cost": {"input": 1.5}},
                    "mine": {
                        "id": "claude-haiku-4-5",
                        "name": "Mine",
                        "options": {"a": 1},
                        "headers": {"x-a": "b"},
                    },
                    "new": {"tool_call": False, "modalities": {"input": ["text", "image"]}},
                }
            }
        }
    }
    providers = world.providers()
    known = CATALOG.find_model("anthropic", "claude-sonnet-5")
    changed = providers.find_model("anthropic/claude-sonnet-5")
    assert known is not None
    assert (changed.limits.context, changed.limits.output) == (5000, known.limits.output)
    assert (changed.prices.input, changed.prices.output) == (1.5, known.prices.output)
    mine = providers.find_model("anthropic/mine")
    assert (mine.id, mine.api_id, mine.name, mine.options, mine.headers) == (
        "mine", "claude-haiku-4-5", "Mine", {"a": 1}, {"x-a": "b"},
    )  # fmt: skip
    assert mine.limits.context == 200_000
    new = providers.find_model("anthropic/new")
    assert (new.npm, new.tool_call, new.input) == ("@ai-sdk/anthropic", False, {"text", "image"})


@pytest.mark.parametrize(
    ("lists", "left"),
    [
        ({"whitelist": ["a"]}, {"a"}),
        ({"blacklist": ["a"]}, {"b"}),
        ({"models": {"a": {"disabled": True}, "b": {}}}, {"b"}),
        ({"whitelist": []}, set()),
    ],
)
def test_lists_of_the_configuration_filter_models(
    world: World, lists: JSON, left: set[str]
) -> None:
    base = {"options": {"baseURL": "http://127.0.0.1:1/v1"}, "models": {"a": {}, "b": {}}}
    world.config = {"provider": {"mine": {**base, **lists}}}
    providers = world.providers()
    assert set(providers.list_models("mine")) == left
    for name in {"a", "b"} - left:
        with pytest.raises(UnknownModel):
            providers.find_model(f"mine/{name}")


def test_unknown_names_are_answered_with_similar_ones(world: World) -> None:
    providers = world.providers()
    with pytest.raises(UnknownModel, match="`anthropic`"):
        providers.find_model("antropic/claude-sonnet-5")
    with pytest.raises(UnknownModel, match="anthropic/claude-sonnet-5") as failed:
        providers.find_model("anthropic/claude-sonet-5")
    assert str(failed.value).count("`anthropic/") <= 3
    for ref in ("", "/", "openai/", "nothing"):
        with pytest.raises(UnknownModel):
            providers.find_model(ref)


def test_a_bare_model_name_is_answered_with_the_whole_one(world: World) -> None:
    world.environment = {"ANTHROPIC_API_KEY": KEY}
    with pytest.raises(UnknownModel, match="`anthropic/claude-sonnet-5`"):
        world.providers().find_model("claude-sonnet-5")


def test_a_server_whose_models_nobody_lists_takes_any_name(world: World) -> None:
    world.local = [LocalServer("ollama", "Ollama", "http://127.0.0.1:1/v1")]
    world.config = {"provider": {"mine": {"options": {"baseURL": "http://127.0.0.1:1/v1"}}}}
    assert world.providers().find_model("ollama/qwen3:8b").id == "qwen3:8b"
    assert world.providers().find_model("mine/some/name").id == "some/name"


async def test_a_program_of_the_catalog_at_an_address_of_this_machine_is_listed_by_name_only(
    world: World,
) -> None:
    async with serving(http(b'{"data":[{"id":"m"}]}')) as (url, _):
        world.local = [LocalServer("llama.cpp", "llama.cpp", f"{url}/v1")]
        local = [
            each.id
            for each in CATALOG.list_providers()
            if each.api and is_loopback(urlsplit(each.api).hostname or "")
        ]
        assert local
        unnamed = world.providers()
        for name in local:
            row = unnamed.get_provider(name)
            assert explain_unusable(unnamed, row, frozenset()) == UNNAMED_REASON
            world.config = {"provider": {name: {}}}
            assert explain_unusable(world.providers(), row, frozenset()) == ""
        offers, _ = await list_offers(unnamed)
        assert {each.model.provider_id for each in offers} == {"llama.cpp"}


def test_keys_come_from_configuration_then_environment_then_file(world: World) -> None:
    world.credentials.store_key("openai", "stored-key", "https://api.openai.com/v1")
    assert world.key("openai") == "stored-key"
    world.environment = {"OPENAI_API_KEY": "environment-key"}
    assert world.key("openai") == "environment-key"
    world.config = {"provider": {"openai": {"options": {"apiKey": "configured-key"}}}}
    assert world.key("openai") == "configured-key"


def test_a_stored_key_does_not_follow_a_changed_base_url(world: World) -> None:
    world.credentials.store_key("openai", KEY, "https://api.openai.com/v1")
    world.config = {"provider": {"openai": {"options": {"baseURL": "https://evil.example/v1"}}}}
    with pytest.raises(WrongKeyOrigin) as failed:
        world.providers().open_model("openai/gpt-6-sol")
    assert "https://api.openai.com" in str(failed.value)
    assert "https://evil.example" in str(failed.value)


def test_a_stored_key_does_not_follow_to_the_service_of_another_provider(world: World) -> None:
    world.environment = {"AWS_REGION": "us-east-1"}
    world.credentials.store_key("openai", KEY, "https://api.openai.com/v1")
    mantle = "https://bedrock-mantle.us-east-1.api.aws/openai/v1"
    world.config = {"provider": {"openai": {"options": {"baseURL": mantle}}}}
    with pytest.raises(WrongKeyOrigin):
        world.key("openai")


def test_one_key_of_bedrock_serves_both_of_its_addresses(world: World) -> None:
    world.environment = {"AWS_REGION": "us-east-1"}
    world.credentials.store_key(
        "amazon-bedrock", KEY, "https://bedrock-runtime.us-east-1.amazonaws.com"
    )
    assert world.key("amazon-bedrock") == KEY
    mantle = "https://bedrock-mantle.us-east-1.api.aws/openai/v1"
    world.config = {"provider": {"amazon-bedrock": {"options": {"baseURL": mantle}}}}
    assert world.key("amazon-bedrock") == KEY


def test_an_entry_without_an_origin_does_not_follow_it_either(world: World) -> None:
    world.credentials.path.write_text(f'{{"openai": {{"type": "api", "key": "{KEY}"}}}}')
    assert world.key("openai") == KEY
    world.config = {"provider": {"openai": {"options": {"baseURL": "https://evil.example/v1"}}}}
    with pytest.raises(WrongKeyOrigin):
        world.key("openai")


def test_an_entry_without_an_origin_serves_a_provider_that_only_the_configuration_knows(
    world: World,
) -> None:
    world.credentials.path.write_text(f'{{"mine": {{"type": "api", "key": "{KEY}"}}}}')
    world.config = {"provider": {"mine": {"options": {"baseURL": "https://mine.example/v1"}}}}
    assert world.key("mine") == KEY


def test_a_missing_key_says_which_variable_and_which_command(world: World) -> None:
    with pytest.raises(NoKey, match=r"ANTHROPIC_API_KEY.*codeloop auth login anthropic"):
        world.providers().open_model("anthropic/claude-sonnet-5")


def test_no_key_is_needed_where_the_configuration_says_the_address_or_the_header(
    world: World,
) -> None:
    world.config = {
        "provider": {
            "openai": {"options": {"baseURL": "http://127.0.0.1:1/v1"}},
            "anthropic": {"options": {"headers": {"Authorization": "Bearer x"}}},
            "google": {"options": {"headers": {"X-Goog-Api-Key": "x"}}},
        }
    }
    assert world.key("openai") is None
    assert world.key("anthropic") is None
    assert world.key("google") is None


def test_an_address_is_filled_from_the_environment_or_the_missing_name_is_told(
    world: World,
) -> None:
    world.environment = {"AZURE_API_KEY": KEY}
    with pytest.raises(ModelUnavailable, match="AZURE_RESOURCE_NAME"):
        make_endpoint(world.row("azure"), world.credentials, world.environment)
    world.environment["AZURE_RESOURCE_NAME"] = "mine"
    endpoint = make_endpoint(world.row("azure"), world.credentials, world.environment)
    assert endpoint.base_url == "https://mine.services.ai.azure.com/anthropic/v1"
    world.environment["AZURE_RESOURCE_NAME"] = "evil.example/?"
    assert sources(world)["azure"] == "environment"
    world.environment["AZURE_RESOURCE_NAME"] = "user@evil.example"
    with pytest.raises(ModelUnavailable, match="not a valid base URL"):
        make_endpoint(world.row("azure"), world.credentials, world.environment)


def test_one_key_of_azure_serves_both_of_its_addresses_and_no_other(world: World) -> None:
    world.config = {"provider": {"azure": {"options": {"resourceName": "mine"}}}}
    world.credentials.store_key("azure", KEY, "https://mine.services.ai.azure.com/anthropic/v1")
    row, models = world.row("azure"), world.providers().list_models("azure")
    found = {
        name: make_endpoint(row, world.credentials, world.environment, find_service(models[name]))
        for name in ("gpt-5.4", "claude-opus-4-5")
    }
    assert found["gpt-5.4"].base_url == "https://mine.openai.azure.com/openai/v1"
    assert found["claude-opus-4-5"].base_url == "https://mine.services.ai.azure.com/anthropic/v1"
    assert {each.key for each in found.values()} == {KEY}
    world.config = {"provider": {"azure": {"options": {"baseURL": "https://evil.example/v1"}}}}
    with pytest.raises(WrongKeyOrigin):
        world.key("azure")


def test_a_program_that_prints_the_key_makes_a_provider_usable(world: World) -> None:
    world.config = {"provider": {"openai": {"options": {"apiKeyHelper": "pass show openai"}}}}
    assert sources(world) == {"openai": "configuration"}
    endpoint = make_endpoint(world.row("openai"), world.credentials, world.environment)
    assert endpoint.key is None
    assert endpoint.signer is not None
    world.config["provider"]["openai"]["options"]["apiKey"] = KEY
    assert world.key("openai") == KEY


def test_deadlines_come_from_the_configuration(world: World) -> None:
    def deadlines(**options: object) -> tuple[float, float]:
        world.config = {
            "provider": {"mine": {"options": {"baseURL": "http://127.0.0.1:1", **options}}}
        }
        endpoint = make_endpoint(world.row("mine"), world.credentials, world.environment)
        return endpoint.first_byte, endpoint.idle

    assert deadlines() == (MODEL_FIRST_BYTE.seconds, MODEL_IDLE.seconds)
    assert deadlines(timeout=2500, chunkTimeout=100) == (2.5, 0.1)
    assert deadlines(timeout=False)[0] >= 3600
    for wrong in (0, -1, "5s", []):
        with pytest.raises(ModelUnavailable, match=r"provider.mine.options.timeout"):
            deadlines(timeout=wrong)


def test_a_protocol_that_we_do_not_speak_is_named_with_those_that_we_do(world: World) -> None:
    world.config = {
        "provider": {"mine": {"npm": "@acme/odd", "options": {"baseURL": "http://127.0.0.1:1"}}}
    }
    with pytest.raises(UnsupportedProtocol, match=r"@acme/odd.*anthropic-messages.*openai-chat"):
        world.providers().open_model("mine/m")


async def test_an_opened_model_asks_its_service_with_its_key(world: World) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]}
    body = b"data: " + msgspec.json.encode(chunk) + b"\n\ndata: [DONE]\n\n"
    answer = http(body).replace(b"application/json", b"text/event-stream")
    async with serving(answer) as (url, heads):
        world.config = {"provider": {"mine": {"options": {"baseURL": f"{url}/v1", "apiKey": KEY}}}}
        model = world.providers().open_model("mine/m")
        request = ModelRequest(system="s", messages=(UserModelMessage((TextPiece("hi"),)),))
        events = [event async for event in model.stream(request)]
    assert TextDelta("hello") in events
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "stop"
    assert heads[0].startswith(b"POST /v1/chat/completions ")
    assert f"bearer {KEY}".encode() in heads[0].lower().replace(KEY.lower().encode(), KEY.encode())


async def test_the_configured_model_comes_first_and_must_exist(world: World) -> None:
    world.environment = {"OPENAI_API_KEY": KEY}
    world.config = {"model": "anthropic/claude-sonnet-5"}
    assert await choose_default(world.providers()) == "anthropic/claude-sonnet-5"
    assert await choose_default(world.providers(), "openai/gpt-6-sol") == "openai/gpt-6-sol"
    with pytest.raises(UnknownModel):
        await choose_default(world.providers(), "openai/no-such-thing-at-all")


async def test_without_one_the_environment_comes_before_stored_keys_before_local_servers(
    world: World,
) -> None:
    models = b'{"data": [{"id": "qwen3-coder:30b"}]}'
    async with serving(http(models)) as (url, _):
        world.local = [LocalServer("ollama", "Ollama", f"{url}/v1")]
        assert await choose_default(world.providers()) == "ollama/qwen3-coder:30b"
        world.credentials.store_key("openai", KEY, "https://api.openai.com/v1")
        assert (await choose_default(world.providers())).startswith("openai/")
        world.environment = {"XAI_API_KEY": KEY}
        assert (await choose_default(world.providers())).startswith("xai/")
        world.environment = {"XAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
        assert (await choose_default(world.providers())).startswith("anthropic/claude-")


async def test_variables_that_serve_other_ends_choose_no_model(world: World) -> None:
    world.environment = {"GITHUB_TOKEN": KEY, "HF_TOKEN": KEY, "GITLAB_TOKEN": KEY}
    with pytest.raises(NoModel):
        await choose_default(world.providers())


async def test_a_local_server_without_a_model_is_not_said_to_be_away(world: World) -> None:
    async with serving(http(b'{"data": []}')) as (url, _):
        world.local = [LocalServer("ollama", "Ollama", f"{url}/v1")]
        with pytest.raises(NoModel, match="no local model server offers one"):
            await choose_default(world.providers())


async def test_with_nothing_at_all_three_lines_say_how_to_go_on(world: World) -> None:
    with pytest.raises(NoModel) as failed:
        await choose_default(world.providers())
    assert str(failed.value) == NO_MODEL_MESSAGE
    assert len(NO_MODEL_MESSAGE.splitlines()) == 3
    assert "codeloop auth login" in NO_MODEL_MESSAGE


@pytest.mark.slow
async def test_a_default_can_be_opened_for_every_provider_with_a_key(world: World) -> None:
    for row in CATALOG.list_providers():
        world.environment = {
            name: "https://x.example" if name.endswith("_URL") else "value" for name in row.env
        }
        world.config = {"enabled_providers": [row.id]}
        try:
            ref = await choose_default(world.providers())
        except NoModel:
            continue
        assert world.providers().open_model(ref).info.provider_id == row.id


def test_the_small_model_is_the_configured_one_or_the_providers(world: World) -> None:
    assert (
        world.providers().choose_small_model("anthropic/claude-opus-5")
        == "anthropic/claude-haiku-4-5"
    )
    assert world.providers().choose_small_model("openai/gpt-6-sol") == "openai/gpt-6-luna"
    bedrock = choose_default_model(world.providers().list_models("amazon-bedrock").values())
    assert bedrock is not None
    assert bedrock.id.startswith("global.anthropic.claude-sonnet-"), (
        "without a region most can't be asked"
    )
    for region in ("us", "eu", "global"):
        small = world.providers().choose_small_model(
            f"amazon-bedrock/{region}.anthropic.claude-opus-5-5"
        )
        assert small == f"amazon-bedrock/{region}.anthropic.claude-haiku-4-5-20251001-v1:0"
    world.config = {"small_model": "openai/gpt-6-sol"}
    assert world.providers().choose_small_model("anthropic/claude-opus-5") == "openai/gpt-6-sol"


def test_the_cheapest_model_is_one_of_the_provider_that_costs_less_else_the_same(
    world: World,
) -> None:
    world.config = {"provider": {"acme": {"options": {"baseURL": "http://127.0.0.1:1/v1"}, "models": {
        "large": {"cost": {"input": 3, "output": 15}}, "cheap": {"cost": {"input": 1, "output": 2}}, "unknown": {}
    }}}}  # fmt: skip
    models = OpenModels(world.providers())
    assert models.find_cheapest_model("acme/large") == "acme/cheap"
    assert models.find_cheapest_model("acme/cheap") == "acme/cheap"
    assert models.find_cheapest_model("acme/unknown") == "acme/unknown"


def test_a_local_server_has_no_small_model(world: World) -> None:
    # The catalog has models of the second.
    servers = {
        "ollama": "qwen3",
        "lmstudio": "qwen/qwen3-coder-30b",
    }
    world.local = [LocalServer(name, name, "http://127.0.0.1:1/v1") for name in servers]
    for name, model in servers.items():
        assert world.providers().choose_small_model(f"{name}/{model}") is None


def test_a_childs_environment_has_no_key_of_any_source(world: World) -> None:
    world.credentials.store_key("xai", "stored-key-0123456789", "https://api.x.ai")
    world.config = {"provider": {"groq": {"options": {"apiKey": "configured-key-0123456789"}}}}
    world.environment = {
        "PATH": "/bin",
        "OPENAI_API_KEY": KEY,
        "COPY": KEY,
        "A": "stored-key-0123456789",
        "B": "x configured-key-0123456789 y",
    }
    assert world.providers().make_child_environment() == {"PATH": "/bin"}


def test_no_key_is_in_the_repr_of_an_endpoint_or_a_provider(world: World) -> None:
    world.config = {"provider": {"openai": {"options": {"apiKey": KEY, "headers": {"x-key": KEY}}}}}
    row = world.row("openai")
    assert isinstance(row.config, ProviderConfig)
    assert KEY not in repr(row)
    assert KEY not in repr(make_endpoint(row, world.credentials, world.environment))
