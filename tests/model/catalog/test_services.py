"""Tests of the protocol and address that serve a model,
by the catalog's `npm` names and the configuration.
"""

import msgspec
import pytest

from codeloop.model.catalog.overrides import apply_overrides
from codeloop.model.catalog.services import (
    SERVICE_ROWS,
    SERVICES_BY_PROTOCOL,
    Service,
    ServiceRow,
    find_protocol,
    find_service,
    list_service_urls,
)
from codeloop.model.chat import ModelInfo
from codeloop.model.providers import ADAPTERS
from codeloop.schema.provider_config import ProviderConfig
from codeloop.schema.wire import JSON


def info(npm: str, provider: str = "acme", model: str = "m", protocol: str = "") -> ModelInfo:
    return ModelInfo(provider_id=provider, id=model, name=model, npm=npm, protocol=protocol)


def configured(npm: str, **config: JSON) -> ModelInfo:
    said = msgspec.convert(config, ProviderConfig)
    return apply_overrides({"m": info(npm)}, said, "acme", npm)["m"]


def test_every_protocol_of_a_row_has_an_adapter_and_a_name() -> None:
    spoken = {row.service.protocol for row in SERVICE_ROWS}
    assert spoken <= set(SERVICES_BY_PROTOCOL)
    assert set(ADAPTERS) == set(SERVICES_BY_PROTOCOL)


def test_the_npm_name_says_the_protocol_and_an_unknown_one_none() -> None:
    assert find_protocol(info("@ai-sdk/anthropic")) == "anthropic-messages"
    assert find_protocol(info("@ai-sdk/groq")) == "openai-chat"
    assert find_service(info("watsonx-ai-provider")) is None


def test_the_configuration_may_name_the_protocol() -> None:
    said = configured(
        "watsonx-ai-provider", options={"protocol": "anthropic-messages", "baseURL": "https://h/v1"}
    )
    assert find_protocol(said) == "anthropic-messages"
    assert find_service(configured("@ai-sdk/groq", options={"protocol": "smoke-signals"})) is None


def test_one_model_may_be_served_otherwise_than_the_others() -> None:
    said = configured("@ai-sdk/groq", models={"m": {"provider": {"npm": "@ai-sdk/anthropic"}}})
    assert find_protocol(said) == "anthropic-messages"


@pytest.mark.parametrize("url", ["https://gateway.example/v1", "http://127.0.0.1:4000/v1"])
def test_the_package_of_openai_means_responses_at_an_address_of_its_own_too(url: str) -> None:
    assert (
        find_protocol(configured("@ai-sdk/openai", options={"baseURL": url})) == "openai-responses"
    )


def test_rows_of_one_provider_or_model_stand_above_those_of_all() -> None:
    for at, row in enumerate(SERVICE_ROWS):
        if row.provider == row.model == "*":
            assert all(later.npm != row.npm for later in SERVICE_ROWS[at + 1 :]), (
                f"{row.npm} hides a row below it"
            )


def test_addresses_are_those_of_a_providers_rows() -> None:
    row = ServiceRow("x", Service("openai-chat", "https://h/v1"), provider="acme")
    assert list_service_urls("acme", "y", (row,)) == {"https://h/v1"}
    assert list_service_urls("other", "x", (row,)) == frozenset()


def test_a_row_of_all_providers_is_about_those_of_its_package() -> None:
    row = ServiceRow("@a/x/sub", Service("openai-chat", "https://h/v1"))
    assert list_service_urls("acme", "@a/x", (row,)) == {"https://h/v1"}
    assert list_service_urls("acme", "@a/xy", (row,)) == frozenset()


@pytest.mark.parametrize(
    ("npm", "provider", "model", "protocol", "host"),
    [
        ("@ai-sdk/openai", "openai", "gpt-6-sol", "openai-responses", ""),
        ("@ai-sdk/openai", "opencode", "gpt-5", "openai-responses", ""),
        ("@ai-sdk/xai", "xai", "grok-4.7", "openai-responses", ""),
        ("@ai-sdk/azure", "azure", "gpt-5.4", "openai-responses", "openai.azure.com"),
        ("@ai-sdk/azure", "azure", "deepseek-v4", "openai-chat", "openai.azure.com"),
        ("@ai-sdk/anthropic", "azure", "claude-opus-5", "anthropic-messages", ""),
        (
            "@ai-sdk/azure",
            "azure-cognitive-services",
            "gpt-5.4",
            "openai-responses",
            "cognitiveservices.azure.com",
        ),
        ("@ai-sdk/openai-compatible", "github-copilot", "gpt-5.4", "openai-responses", ""),
        ("@ai-sdk/openai-compatible", "github-copilot", "claude-opus-5", "openai-chat", ""),
    ],
)
def test_the_rows_of_services(
    npm: str, provider: str, model: str, protocol: str, host: str
) -> None:
    service = find_service(info(npm, provider, model))
    assert service is not None
    assert service.protocol == protocol
    assert host in service.url
    assert bool(host) is bool(service.url)


@pytest.mark.parametrize("url", ["https://api.openai.com/v1", "https://eu.api.openai.com/v1"])
def test_openais_own_addresses_speak_responses(url: str) -> None:
    assert (
        find_protocol(configured("@ai-sdk/openai", options={"baseURL": url})) == "openai-responses"
    )
