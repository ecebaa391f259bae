"""Write the table of models in docs/models.md: what the catalog and the quirks say
of those that are used most.
"""

import re
import sys
from pathlib import Path

from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.services import find_protocol
from codeloop.model.catalog.variants import list_variants
from codeloop.model.chat import ModelInfo
from codeloop.model.quirks import ADAPTIVE_MODEL_PATTERN, Quirks, accepts_attachment, find_quirks
from codeloop.tool.toolbox import edits_by_patch

PAGE = Path(__file__).resolve().parents[1] / "docs" / "models.md"
BEGIN, END = (
    "<!-- begin of the table by scripts/build_models.py -->\n",
    "<!-- end of the table -->\n",
)
MODELS = {
    "anthropic": (
        *(
            "claude-opus-5-5",
            "claude-fable-5-1",
            "claude-opus-5",
            "claude-sonnet-5",
            "claude-opus-4-8",
        ),
        *("claude-sonnet-4-6", "claude-haiku-4-5"),
    ),
    "openai": (
        "gpt-6-sol",
        "gpt-6-luna",
        "gpt-6-astra",
        "gpt-5.6-sol",
        "gpt-5.6-terra",
        "gpt-5.6-luna",
        "gpt-5.6",
    ),
    "google": (
        "gemini-3.8-flash",
        "gemini-3.7-flash",
        "gemini-3.5-flash-lite",
        "gemini-3.1-pro-preview",
        "gemini-2.5-pro",
        "gemini-2.5-flash",
    ),
    "google-vertex": ("gemini-3.8-flash", "claude-opus-5-5@default"),
    "amazon-bedrock": (
        "us.anthropic.claude-opus-5-5",
        "anthropic.claude-opus-5-5",
        "openai.gpt-6-sol",
    ),
    "azure": ("gpt-6-sol", "claude-opus-5-5", "kimi-k2.7-code"),
    "github-copilot": ("gpt-6-sol", "claude-opus-5.5", "gemini-3.8-flash"),
    "xai": ("grok-4.7", "grok-4.5"),
    "deepseek": ("deepseek-flash", "deepseek-v4-pro"),
    "moonshotai": ("kimi-k3", "kimi-k2.7-code"),
    "zai": ("glm-5.3", "glm-5.3-flash"),
    "alibaba": ("qwen3.8-max", "qwen3.8-flash"),
    "mistral": ("devstral-latest", "mistral-medium-latest"),
    "minimax": ("MiniMax-M3",),
    "groq": ("openai/gpt-oss-120b", "qwen/qwen3.8-27b"),
    "cerebras": ("gpt-oss-120b",),
    "openrouter": ("anthropic/claude-opus-5.5", "openai/gpt-6-luna"),
    "togetherai": ("zai-org/GLM-5.3",),
}
"""Fifty, by provider."""
PROTOCOLS = {
    "openai-chat": "chat completions",
    "openai-responses": "Responses",
    "anthropic-messages": "messages",
    "anthropic-vertex": "messages",
    "google-generate-content": "generateContent",
    "bedrock-converse": "Converse",
}
HEAD = (
    "model",
    "protocol",
    "efforts",
    "edits by",
    "reads",
    "temperature",
    "thinking goes back",
    "cache",
)


def find_models() -> list[ModelInfo]:
    """Return the models. Raises KeyError for one that the catalog lacks."""
    catalog = Catalog()
    found: list[ModelInfo] = []
    for provider_id, names in MODELS.items():
        provider = catalog.find_provider(provider_id)
        if provider is None:
            raise KeyError(provider_id)
        found += [provider.models[name] for name in names]
    return found


def describe(info: ModelInfo) -> list[str]:
    """Return a row of the table."""
    quirks = find_quirks(info)
    kinds = {
        "images": accepts_attachment(info, quirks, "image/png"),
        "PDF": accepts_attachment(info, quirks, "application/pdf"),
    }
    return [
        f"`{info.ref}`",
        PROTOCOLS[find_protocol(info) or ""],
        ", ".join(list_variants(info)) or "-",
        "patch" if edits_by_patch(info.id) else "edit",
        ", ".join(["text", *(name for name, can in kinds.items() if can)]),
        "as set" if takes_temperature(info, quirks) else "never sent",
        describe_thinking(info, quirks),
        describe_cache(info, quirks),
    ]


def takes_temperature(info: ModelInfo, quirks: Quirks) -> bool:
    """Return whether a temperature that the user sets is sent."""
    return (
        info.temperature
        and quirks.accepts_sampling
        and not re.search(ADAPTIVE_MODEL_PATTERN, (info.api_id or info.id).lower())
    )


def describe_thinking(info: ModelInfo, quirks: Quirks) -> str:
    """Return how earlier thinking is sent back."""
    if not info.reasoning:
        return "-"
    match find_protocol(info):
        case "openai-responses":
            return "encrypted"
        case "openai-chat":
            field = info.reasoning_field or quirks.reasoning_field
            return f"`{field}`" if field else "signed details, where given"
        case _:
            return "signed"


def describe_cache(info: ModelInfo, quirks: Quirks) -> str:
    """Return how the service is told what to keep of a request."""
    match find_protocol(info):
        case "anthropic-messages" | "anthropic-vertex":
            return "marks" if quirks.accepts_cache_marks else "by itself"
        case "bedrock-converse":
            from codeloop.model.protocols.bedrock.request import CACHING_MODELS

            return "marks" if re.search(CACHING_MODELS, info.api_id or info.id) else "by itself"
        case "openai-chat" if quirks.cache_marked_models and "claude" in info.id:
            return "marks"
        case _:
            return f"`{quirks.session_field}`" if quirks.session_field else "by itself"


def format_table() -> str:
    """Return the table of `MODELS` in Markdown."""
    rows = [list(HEAD), ["---"] * len(HEAD), *map(describe, find_models())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def replace_table(text: str) -> str:
    """Return the page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{format_table()}{END}{rest.partition(END)[2]}"


def main() -> None:
    """Write the page; with `--check` only say by the exit code whether it is current."""
    text = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        sys.exit(text != replace_table(text))
    PAGE.write_text(replace_table(text), encoding="utf-8")


if __name__ == "__main__":
    main()
