"""What the catalog does not say of providers, as rows of data: protocols, addresses, local servers, preferences."""

from typing import Literal, NamedTuple

Protocol = Literal["openai-chat", "anthropic-messages"]

PROTOCOLS: dict[str, Protocol] = {
    "@ai-sdk/openai-compatible": "openai-chat",
    "@ai-sdk/openai": "openai-chat",
    "@openrouter/ai-sdk-provider": "openai-chat",
    "@aihubmix/ai-sdk-provider": "openai-chat",
    "@ai-sdk/cerebras": "openai-chat",
    "@ai-sdk/cohere": "openai-chat",
    "@ai-sdk/deepinfra": "openai-chat",
    "@ai-sdk/deepseek": "openai-chat",
    "@ai-sdk/fireworks": "openai-chat",
    "@ai-sdk/gateway": "openai-chat",
    "@ai-sdk/groq": "openai-chat",
    "@ai-sdk/mistral": "openai-chat",
    "@ai-sdk/moonshotai": "openai-chat",
    "@ai-sdk/perplexity": "openai-chat",
    "@ai-sdk/togetherai": "openai-chat",
    "@ai-sdk/vercel": "openai-chat",
    "@ai-sdk/xai": "openai-chat",
    "venice-ai-sdk-provider": "openai-chat",
    "@ai-sdk/anthropic": "anthropic-messages",
}
"""The wire protocol of each `npm` name that we speak."""

BASE_URLS: dict[str, str] = {
    "aihubmix": "https://aihubmix.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    "deepinfra": "https://api.deepinfra.com/v1/openai",
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
"""By provider: the address, if the catalog has none (there the vendor's own package knows it)."""


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
)
"""In the order in which they are preferred."""

PREFERRED_PROVIDERS = (
    "anthropic",
    "openai",
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
"""Whose key in the environment counts first when no model is configured; then the others in the catalog's order."""

NEEDS_CHOICE = frozenset(
    {
        "amazon-bedrock",
        "cloudflare-ai-gateway",
        "cloudflare-workers-ai",
        "databricks",
        "digitalocean",
        "github-copilot",
        "gitlab",
        "huggingface",
        "snowflake-cortex",
    }
)
"""Their variables (GITHUB_TOKEN, HF_TOKEN, ...) are mostly set for other ends: used only for a model that is named."""

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
"""Patterns of ids (lower case): the first that fits counts, of those it fits the newest."""

OWN_MODELS: dict[str, tuple[str, ...]] = {
    "alibaba": ("qwen*-max",),
    "alibaba-cn": ("qwen*-max",),
    "mistral": ("devstral*", "mistral-medium*"),
}
"""Patterns that come before PREFERRED_MODELS at a vendor that serves others' models too."""

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
"""As PREFERRED_MODELS, for titles and summaries: quick and cheap."""

NOT_BY_DEFAULT = (
    "*-fast", "*-fast:*", "*-fast-*", "*-pro-fast", "*-sol-pro", "*-luna-pro", "*flashx", "*image*", "*audio*",
    "*realtime*", "*search*", "*safeguard*", "*highspeed*", "*-turbo", "*deep-research*", "*embed*", "*rerank*",
    "*whisper*", "*tts*", "*ocr*", "*guard*", "*:free", "*-free", "*latest", "*preview*", "*thinking*", "~*",
)  # fmt: skip
"""Variants that are dearer, for other ends, or that change under the same name: only for a model that is named."""

LOCAL_MODELS = (
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
"""As PREFERRED_MODELS, for the models of a local server, whose age is not known: the first named counts."""

NOT_FOR_CHAT = ("*embed*", "*rerank*", "*whisper*", "*tts*", "*bge-*", "*minilm*", "*clip*", "*guard*")
"""Models of a local server that can't hold a conversation."""
