"""Which protocol and address serve a model: rows by the `npm` name of models.dev, the provider and the model."""

from functools import lru_cache
from typing import Literal, NamedTuple

from codeloop.kit.wildcard import matches
from codeloop.model.chat import ModelInfo

Protocol = Literal[
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "anthropic-vertex",
    "google-generate-content",
    "google-interactions",
    "bedrock-converse",
]


class Service(NamedTuple):
    """What serves a model. `url`: its address, perhaps with `${NAME}` in it; empty: the provider's own."""

    protocol: Protocol
    url: str = ""


class ServiceRow(NamedTuple):
    """What serves the models of an `npm` name; `provider` and `model` are wildcards over their ids."""

    npm: str
    service: Service
    provider: str = "*"
    model: str = "*"


CHAT = Service("openai-chat")
RESPONSES = Service("openai-responses")
MESSAGES = Service("anthropic-messages")
GEMINI = Service("google-generate-content")
INTERACTIONS = Service("google-interactions")
CONVERSE = Service("bedrock-converse")
_VERTEX = "projects/${GOOGLE_VERTEX_PROJECT}/locations/${GOOGLE_VERTEX_LOCATION}/publishers"
VERTEX_GEMINI = Service("google-generate-content", f"https://${{GOOGLE_VERTEX_ENDPOINT}}/v1beta1/{_VERTEX}/google")
VERTEX_CLAUDE = Service("anthropic-vertex", f"https://${{GOOGLE_VERTEX_ENDPOINT}}/v1/{_VERTEX}/anthropic")
MANTLE = Service("openai-responses", "https://bedrock-mantle.${AWS_REGION}.api.aws/openai/v1")
"""Bedrock's address for models that it serves as OpenAI does."""
_ALL = (CHAT, RESPONSES, MESSAGES, GEMINI, INTERACTIONS, CONVERSE, Service("anthropic-vertex"))
BY_NAME: dict[str, Service] = {service.protocol: service for service in _ALL}
"""What `options.protocol` of the configuration may name."""

AZURE_URL = "https://${AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1"
AZURE_COGNITIVE_URL = "https://${AZURE_COGNITIVE_SERVICES_RESOURCE_NAME}.cognitiveservices.azure.com/openai/v1"

ROWS = (
    *(
        ServiceRow("@ai-sdk/azure", Service("openai-responses", url), provider, model)
        for provider, url in (("azure", AZURE_URL), ("azure-cognitive-services", AZURE_COGNITIVE_URL))
        for model in ("gpt-*", "o1*", "o3*", "o4*", "codex*", "model-router")
    ),
    ServiceRow("@ai-sdk/azure", Service("openai-chat", AZURE_URL), provider="azure"),
    ServiceRow("@ai-sdk/azure", Service("openai-chat", AZURE_COGNITIVE_URL), provider="azure-cognitive-services"),
    ServiceRow("@ai-sdk/azure", RESPONSES),
    *(
        ServiceRow("@ai-sdk/openai-compatible", RESPONSES, "github-copilot", model)
        for model in ("gpt-5.*", "gpt-6*", "*codex*")
    ),
    ServiceRow("@ai-sdk/openai-compatible", CHAT),
    ServiceRow("@ai-sdk/openai", RESPONSES),
    ServiceRow("@ai-sdk/anthropic", MESSAGES),
    ServiceRow("@openrouter/ai-sdk-provider", CHAT),
    ServiceRow("@aihubmix/ai-sdk-provider", CHAT),
    ServiceRow("@ai-sdk/cerebras", CHAT),
    ServiceRow("@ai-sdk/cohere", CHAT),
    ServiceRow("@ai-sdk/deepinfra", CHAT),
    ServiceRow("@ai-sdk/deepseek", CHAT),
    ServiceRow("@ai-sdk/fireworks", CHAT),
    ServiceRow("@ai-sdk/gateway", CHAT),
    ServiceRow("@ai-sdk/groq", CHAT),
    ServiceRow("@ai-sdk/mistral", CHAT),
    ServiceRow("@ai-sdk/moonshotai", CHAT),
    ServiceRow("@ai-sdk/perplexity", CHAT),
    ServiceRow("@ai-sdk/togetherai", CHAT),
    ServiceRow("@ai-sdk/vercel", CHAT),
    ServiceRow("@ai-sdk/xai", RESPONSES),
    ServiceRow("venice-ai-sdk-provider", CHAT),
    ServiceRow("@ai-sdk/google", GEMINI),
    ServiceRow("@ai-sdk/google-vertex", VERTEX_GEMINI),
    ServiceRow("@ai-sdk/google-vertex/anthropic", VERTEX_CLAUDE),
    ServiceRow("@ai-sdk/amazon-bedrock", CONVERSE),
    ServiceRow("@ai-sdk/amazon-bedrock/mantle", MANTLE),
)
"""The first match counts: specific rows precede general ones. Without a match the protocol is unsupported."""

RESPONSES_HOSTS = ("api.openai.com", "api.x.ai")
"""Hosts where `@ai-sdk/openai` and `@ai-sdk/xai` mean the Responses protocol, even if the address is configured."""
_RESPONSES_ON_OWN_HOSTS = frozenset({"@ai-sdk/openai", "@ai-sdk/xai"})


def service_of(info: ModelInfo) -> Service | None:
    """Return the service of a model; None: a protocol that is not spoken."""
    service = _find_service(info.npm, info.provider_id, info.id)
    if info.protocol and (service is None or service.protocol != info.protocol):
        return BY_NAME.get(info.protocol)
    return service


def protocol_of(info: ModelInfo) -> Protocol | None:
    """Return the protocol that a model is served by; None: one that is not spoken."""
    service = service_of(info)
    return None if service is None else service.protocol


def is_spoken(npm: str, provider_id: str) -> bool:
    """Return whether a provider's models of an `npm` name are served by a protocol that is spoken."""
    return _find_service(npm, provider_id, "") is not None


def addresses_of(provider_id: str, rows: tuple[ServiceRow, ...] = ROWS) -> frozenset[str]:
    """Return the addresses, perhaps with `${NAME}` in them, that a provider's services have besides its own."""
    return frozenset(row.service.url for row in rows if row.service.url and matches(provider_id, row.provider))


def protocol_elsewhere(npm: str, host: str) -> str:
    """Return the protocol at an address that the configuration names; empty: that of the model's row.

    OpenAI-compatible services support chat completions for sure, Responses perhaps.
    """
    is_own = any(host == host_name or host.endswith(f".{host_name}") for host_name in RESPONSES_HOSTS)
    return CHAT.protocol if npm in _RESPONSES_ON_OWN_HOSTS and not is_own else ""


@lru_cache(maxsize=8_192)
def _find_service(npm: str, provider_id: str, model_id: str) -> Service | None:
    for row in _by_npm().get(npm, ()):
        if matches(provider_id, row.provider) and matches(model_id, row.model):
            return row.service
    return None


@lru_cache(maxsize=1)
def _by_npm() -> dict[str, list[ServiceRow]]:
    rows: dict[str, list[ServiceRow]] = {}
    for row in ROWS:
        rows.setdefault(row.npm, []).append(row)
    return rows
