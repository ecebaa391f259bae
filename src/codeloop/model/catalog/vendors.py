"""Tables of what the catalog lacks about providers: addresses, settings, local servers,
preferred and small models.
"""

from typing import NamedTuple

# models.dev names the package of the AI SDK for these, and the package has the address.
BASE_URLS: dict[str, str] = {
    "aihubmix": "https://aihubmix.com/v1",
    "amazon-bedrock": "${AWS_ENDPOINT_URL_BEDROCK_RUNTIME}",
    "anthropic": "https://api.anthropic.com/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "deepinfra": "https://api.deepinfra.com/v1/openai",
    "google": "https://generativelanguage.googleapis.com/v1beta",
    "google-vertex-anthropic": (
        "https://${GOOGLE_VERTEX_ENDPOINT}/v1/projects/${GOOGLE_VERTEX_PROJECT}"
        "/locations/${GOOGLE_VERTEX_LOCATION}/publishers/anthropic"
    ),
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "openai": "https://api.openai.com/v1",
    "perplexity": "https://api.perplexity.ai",
    "togetherai": "https://api.together.xyz/v1",
    "v0": "https://api.v0.dev/v1",
    "venice": "https://api.venice.ai/api/v1",
    "vercel": "https://ai-gateway.vercel.sh/v1",
    "xai": "https://api.x.ai/v1",
}
"""By provider: its address, where the catalog has none (the vendor's SDK contains
it) or that of another API.
"""

SETTING_VARIABLES: dict[str, dict[str, str]] = {
    "amazon-bedrock": {"region": "AWS_REGION", "profile": "AWS_PROFILE"},
    "google-vertex": {"project": "GOOGLE_VERTEX_PROJECT", "location": "GOOGLE_VERTEX_LOCATION"},
    "google-vertex-anthropic": {
        "project": "GOOGLE_VERTEX_PROJECT",
        "location": "GOOGLE_VERTEX_LOCATION",
    },
    "azure": {"resourceName": "AZURE_RESOURCE_NAME"},
    "azure-cognitive-services": {"resourceName": "AZURE_COGNITIVE_SERVICES_RESOURCE_NAME"},
}
"""By provider: configuration options -> the environment variables that they take the place of."""


class AskedSetting(NamedTuple):
    """A setting that a new user is asked for if it is missing: the variable it takes the place of,
    and the question.
    """

    variable: str
    question: str
    example: str


_PROJECT_SETTING = AskedSetting(
    "GOOGLE_VERTEX_PROJECT", "The id of the Google Cloud project", "such as my-project-123456"
)
_RESOURCE_QUESTION = "The name of the Azure resource"
_RESOURCE_EXAMPLE = "what stands before the first dot of its endpoint's host"
ASKED_SETTINGS: dict[str, dict[str, AskedSetting]] = {
    "google-vertex": {"project": _PROJECT_SETTING},
    "google-vertex-anthropic": {"project": _PROJECT_SETTING},
    "azure": {
        "resourceName": AskedSetting("AZURE_RESOURCE_NAME", _RESOURCE_QUESTION, _RESOURCE_EXAMPLE)
    },
    "azure-cognitive-services": {
        "resourceName": AskedSetting(
            "AZURE_COGNITIVE_SERVICES_RESOURCE_NAME", _RESOURCE_QUESTION, _RESOURCE_EXAMPLE
        )
    },
}
"""By provider and configuration option."""

DEPLOYMENT_PROVIDERS = frozenset({"azure", "azure-cognitive-services"})
"""Providers that serve only models which the user has deployed there,
by the name of the deployment.
"""


class LocalServer(NamedTuple):
    """A model server that people run on their own machine, at its default address."""

    id: str
    name: str
    url: str


LOCAL_SERVERS = (
    LocalServer("ollama", "Ollama", "http://127.0.0.1:11434/v1"),
    LocalServer("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1"),
    LocalServer("llama.cpp", "llama.cpp", "http://127.0.0.1:8080/v1"),
    LocalServer("vllm", "vLLM", "http://127.0.0.1:8000/v1"),
    LocalServer("sglang", "SGLang", "http://127.0.0.1:30000/v1"),
    LocalServer("docker-model-runner", "Docker Model Runner", "http://127.0.0.1:12434/engines/v1"),
)
"""In the order in which they are preferred."""

PREFERRED_PROVIDERS = (
    "anthropic",
    "openai",
    "google",
    "openrouter",
    "vercel",
    "xai",
    "deepseek",
    "moonshotai",
    "moonshotai-cn",
    "zai",
    "zhipuai",
    "mistral",
    "alibaba",
    "minimax",
    "groq",
    "cerebras",
    "togetherai",
    "fireworks-ai",
    "deepinfra",
)
"""The order of preference when no model is configured,
among providers whose keys have the same source.
"""

EXPLICIT_PROVIDERS = frozenset(
    {
        "amazon-bedrock",
        "cloudflare-ai-gateway",
        "cloudflare-workers-ai",
        "databricks",
        "digitalocean",
        "github-copilot",
        "gitlab",
        "google-vertex",
        "google-vertex-anthropic",
        "huggingface",
        "snowflake-cortex",
    }
)
"""Their variables (GITHUB_TOKEN, HF_TOKEN, ...) mostly have another purpose: used only
if the user names a model.
"""

PREFERRED_MODELS = (
    "*claude-sonnet-*",
    "*claude-opus-*",
    "*gpt-*-sol",
    "*gpt-5*",
    "*gemini-*-pro*",
    "*grok-*",
    "*kimi-k*",
    "*glm-*",
    "*deepseek-*-pro",
    "*qwen*coder*",
    "*qwen*max",
    "*devstral*",
    "*mistral-medium*",
    "*minimax-m*",
    "*gpt-oss-120b*",
    "*deepseek*",
    "*qwen*",
)
"""Patterns of ids (lower case), the most preferred first;
of several models that match one, the newest counts.
"""

PREFERRED_MODELS_BY_PROVIDER: dict[str, tuple[str, ...]] = {
    "alibaba": ("qwen*-max",),
    "alibaba-cn": ("qwen*-max",),
    "amazon-bedrock": ("global.anthropic.claude-sonnet-*",),
    "mistral": ("devstral*", "mistral-medium*"),
}
"""By provider: patterns that come before PREFERRED_MODELS,
for vendors that serve models of others too.
"""

SMALL_MODELS = (
    "*claude-haiku-*",
    "*gpt-*-luna",
    "*gpt-*-nano",
    "*gpt-*-mini",
    "*gemini-*-flash-lite",
    "*gemini-*-flash",
    "*grok-*-fast*",
    "*glm-*-flash*",
    "*deepseek*flash*",
    "*qwen*flash*",
    "*mistral-small*",
    "*minimax-m*",
    "*gpt-oss-20b*",
    "*llama-3.1-8b*",
)
"""Like PREFERRED_MODELS, for titles, judges and other side requests: quick and cheap models."""

EXPLICIT_MODELS = (
    "*-fast", "*-fast:*", "*-fast-*", "*-pro-fast", "*-sol-pro", "*-luna-pro", "*flashx", "*image*", "*audio*",
    "*realtime*", "*search*", "*safeguard*", "*highspeed*", "*-turbo", "*deep-research*", "*embed*", "*rerank*",
    "*whisper*", "*tts*", "*ocr*", "*guard*", "*:free", "*-free", "*latest", "*preview*", "*thinking*", "~*",
)  # fmt: skip
"""Models that cost more, have another purpose, or change under the same name: used
only when the user names them.
"""

PREFERRED_LOCAL_MODELS = (
    "*coder*",
    "*devstral*",
    "*gpt-oss*",
    "*qwen3*",
    "*glm*",
    "*mistral*",
    "*qwen*",
    "*llama*",
    "*",
)
"""Like PREFERRED_MODELS, for the models of a local server,
whose age is unknown: the first that it lists counts.
"""

NON_CHAT_MODELS = (
    "*embed*",
    "*rerank*",
    "*whisper*",
    "*tts*",
    "*bge-*",
    "*minilm*",
    "*clip*",
    "*guard*",
)
"""Models of local servers and of Azure that can't hold a conversation."""

REGION_PREFIX = r"(?:us|us-gov|eu|apac|jp|au|ca|in|global)\."
"""The region before the id of a model at Bedrock; most models are only available with one."""
