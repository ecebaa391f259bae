"""Finds the protocol and the address that serve a model, by rows over its provider,
its id and its `npm` name.

`npm` is the package of the AI SDK by which models.dev says how a provider is called.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

from codeloop.kit.wildcard import matches
from codeloop.model.chat import ModelInfo

WireProtocol = Literal[
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "anthropic-vertex",
    "google-generate-content",
    "google-interactions",
    "bedrock-converse",
]


class Service(NamedTuple):
    """The protocol and address that serve a model. `url` may contain `${NAME}`;
    empty: the provider's own address.
    """

    protocol: WireProtocol
    url: str = ""


class ServiceRow(NamedTuple):
    """The service for models of an `npm` name;
    `provider` and `model` are wildcards over their ids.
    """

    npm: str
    service: Service
    provider: str = "*"
    model: str = "*"


CHAT_COMPLETIONS = Service("openai-chat")
RESPONSES = Service("openai-responses")
ANTHROPIC_MESSAGES = Service("anthropic-messages")
GENERATE_CONTENT = Service("google-generate-content")
INTERACTIONS = Service("google-interactions")
CONVERSE = Service("bedrock-converse")
_VERTEX_PATH = "projects/${GOOGLE_VERTEX_PROJECT}/locations/${GOOGLE_VERTEX_LOCATION}/publishers"
VERTEX_GEMINI = Service(
    "google-generate-content", f"https://${{GOOGLE_VERTEX_ENDPOINT}}/v1beta1/{_VERTEX_PATH}/google"
)
VERTEX_CLAUDE = Service(
    "anthropic-vertex", f"https://${{GOOGLE_VERTEX_ENDPOINT}}/v1/{_VERTEX_PATH}/anthropic"
)
BEDROCK_MANTLE = Service(
    "openai-responses", "https://bedrock-mantle.${AWS_REGION}.api.aws/openai/v1"
)
"""Bedrock's address for the models that it serves by OpenAI's protocol."""
_PLAIN_SERVICES = (
    CHAT_COMPLETIONS,
    RESPONSES,
    ANTHROPIC_MESSAGES,
    GENERATE_CONTENT,
    INTERACTIONS,
    CONVERSE,
    Service("anthropic-vertex"),
)
SERVICES_BY_PROTOCOL: dict[str, Service] = {
    service.protocol: service for service in _PLAIN_SERVICES
}
"""The services that `options.protocol` of the configuration may name."""

AZURE_URL = "https://${AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1"
AZURE_COGNITIVE_URL = (
    "https://${AZURE_COGNITIVE_SERVICES_RESOURCE_NAME}.cognitiveservices.azure.com/openai/v1"
)

# models.dev names one package for a provider, even if it serves some of its
# models by another protocol.
SERVICE_ROWS = (
    *(
        ServiceRow(
            "@ai-sdk/azure", Service("openai-responses", url), provider=provider, model=model
        )
        for provider, url in (
            ("azure", AZURE_URL),
            ("azure-cognitive-services", AZURE_COGNITIVE_URL),
        )
        for model in ("gpt-*", "o1*", "o3*", "o4*", "codex*", "model-router")
    ),
    ServiceRow("@ai-sdk/azure", Service("openai-chat", AZURE_URL), provider="azure"),
    ServiceRow(
        "@ai-sdk/azure",
        Service("openai-chat", AZURE_COGNITIVE_URL),
        provider="azure-cognitive-services",
    ),
    ServiceRow("@ai-sdk/azure", RESPONSES),
    *(
        ServiceRow("@ai-sdk/openai-compatible", RESPONSES, provider="github-copilot", model=model)
        for model in ("gpt-5.*", "gpt-6*", "*codex*")
    ),
    ServiceRow("@ai-sdk/openai-compatible", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/openai", RESPONSES),
    ServiceRow("@ai-sdk/anthropic", ANTHROPIC_MESSAGES),
    ServiceRow("@openrouter/ai-sdk-provider", CHAT_COMPLETIONS),
    ServiceRow("@aihubmix/ai-sdk-provider", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/cerebras", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/cohere", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/deepinfra", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/deepseek", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/fireworks", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/gateway", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/groq", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/mistral", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/moonshotai", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/perplexity", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/togetherai", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/vercel", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/xai", RESPONSES),
    ServiceRow("venice-ai-sdk-provider", CHAT_COMPLETIONS),
    ServiceRow("@ai-sdk/google", GENERATE_CONTENT),
    ServiceRow("@ai-sdk/google-vertex", VERTEX_GEMINI),
    ServiceRow("@ai-sdk/google-vertex/anthropic", VERTEX_CLAUDE),
    ServiceRow("@ai-sdk/amazon-bedrock", CONVERSE),
    ServiceRow("@ai-sdk/amazon-bedrock/mantle", BEDROCK_MANTLE),
)
"""The first match counts: specific rows precede general ones.
Without a match the protocol is unsupported.
"""


def find_service(info: ModelInfo) -> Service | None:
    """Return the service of a model; None: its protocol is not supported."""
    service = _match_service_row(info.npm, info.provider_id, info.id)
    if info.protocol and (service is None or service.protocol != info.protocol):
        return SERVICES_BY_PROTOCOL.get(info.protocol)
    return service


def find_protocol(info: ModelInfo) -> WireProtocol | None:
    """Return the protocol of a model; None: it is not supported."""
    service = find_service(info)
    return None if service is None else service.protocol


def is_supported(npm: str, provider_id: str) -> bool:
    """Return whether the protocol of a provider's models of an `npm` name is supported."""
    return _match_service_row(npm, provider_id, "") is not None


def list_service_urls(
    provider_id: str, npm: str, rows: tuple[ServiceRow, ...] = SERVICE_ROWS
) -> frozenset[str]:
    """Return the addresses, perhaps with `${NAME}` in them,
    that a provider's services have besides its own.

    A row for all providers is about those whose `npm` names the same package, such as
    `@ai-sdk/amazon-bedrock`.
    """
    return frozenset(
        row.service.url
        for row in rows
        if row.service.url
        and matches(provider_id, row.provider)
        and (row.provider != "*" or _get_package(row.npm) == _get_package(npm))
    )


def _get_package(npm: str) -> str:
    """Return an `npm` name without a module of the package, such as `/mantle`."""
    return "/".join(npm.split("/")[:2])


# Called for every model of the catalog when lists are made.
@lru_cache(maxsize=8_192)
def _match_service_row(npm: str, provider_id: str, model_id: str) -> Service | None:
    for row in _group_rows_by_npm().get(npm, ()):
        if matches(provider_id, row.provider) and matches(model_id, row.model):
            return row.service
    return None


@lru_cache(maxsize=1)
def _group_rows_by_npm() -> dict[str, list[ServiceRow]]:
    rows: dict[str, list[ServiceRow]] = {}
    for row in SERVICE_ROWS:
        rows.setdefault(row.npm, []).append(row)
    return rows
