"""Lists and applies the variants of a model: thinking efforts by name,
each a set of request options.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from codeloop.kit.jsonc import merge_objects
from codeloop.kit.text.suggest import find_similar, format_suggestion
from codeloop.model.catalog.services import WireProtocol, find_protocol
from codeloop.model.chat import ModelInfo
from codeloop.model.errors import UnknownModel
from codeloop.model.quirks import ADAPTIVE_MODEL_PATTERN
from codeloop.schema.limits import MODEL_OUTPUT_TOKENS
from codeloop.schema.message import NO_VARIANT
from codeloop.schema.wire import JSON

MIN_BUDGET_TOKENS = 1_024
"""Anthropic refuses a smaller thinking budget."""


class VariantRow(NamedTuple):
    """The variants of the reasoning models of a protocol whose id the pattern matches."""

    protocol: WireProtocol
    pattern: str
    """A regular expression over the id in lower case."""
    variants: dict[str, JSON]


EFFORT_VARIANTS: dict[str, JSON] = {
    name: {"reasoningEffort": name} for name in ("low", "medium", "high")
}
ADAPTIVE_VARIANTS: dict[str, JSON] = {
    name: {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": name},
    }
    for name in ("low", "medium", "high", "max")
}
# For the models of Claude that `quirks.ADAPTIVE_MODEL_PATTERN` does not match.
BUDGET_VARIANTS: dict[str, JSON] = {
    name: {"thinking": {"type": "enabled", "budgetTokens": tokens}}
    for name, tokens in (("high", 16_000), ("max", 32_000))
}
# Levels since Gemini 3, budgets before.
GEMINI_LEVEL_VARIANTS: dict[str, JSON] = {
    name: {"thinkingConfig": {"thinkingLevel": name}} for name in ("low", "medium", "high")
}
GEMINI_BUDGET_VARIANTS: dict[str, JSON] = {
    name: {"thinkingConfig": {"thinkingBudget": tokens}}
    for name, tokens in (("low", 2_048), ("high", 24_576))
}
INTERACTION_VARIANTS: dict[str, JSON] = {
    name: {"thinking_level": name} for name in ("low", "medium", "high")
}
NOVA_VARIANTS: dict[str, JSON] = {
    name: {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": name}}
    for name in ("low", "medium", "high")
}

VARIANT_ROWS = (
    VariantRow("openai-chat", r"minimax|kimi-k2|glm-4|mistral|magistral|qwen|deepseek-(r1|v3)", {}),
    VariantRow("openai-chat", "", EFFORT_VARIANTS),
    VariantRow("openai-responses", "", EFFORT_VARIANTS),
    VariantRow("anthropic-messages", ADAPTIVE_MODEL_PATTERN, ADAPTIVE_VARIANTS),
    VariantRow("anthropic-messages", "", BUDGET_VARIANTS),
    VariantRow("anthropic-vertex", ADAPTIVE_MODEL_PATTERN, ADAPTIVE_VARIANTS),
    VariantRow("anthropic-vertex", "", BUDGET_VARIANTS),
    VariantRow("google-generate-content", r"gemini-[12]|gemma", GEMINI_BUDGET_VARIANTS),
    VariantRow("google-generate-content", "", GEMINI_LEVEL_VARIANTS),
    VariantRow("google-interactions", "", INTERACTION_VARIANTS),
    VariantRow("bedrock-converse", ADAPTIVE_MODEL_PATTERN, ADAPTIVE_VARIANTS),
    VariantRow("bedrock-converse", "claude", BUDGET_VARIANTS),
    VariantRow("bedrock-converse", "nova-2", NOVA_VARIANTS),
    VariantRow("bedrock-converse", "gpt-oss|gpt-[5-9]", EFFORT_VARIANTS),
    VariantRow("bedrock-converse", "", {}),
)
"""The first match counts. A row without variants: the effort of these models can't be set."""


def list_variants(info: ModelInfo) -> dict[str, JSON]:
    """Return the variants of a model: its row's, overridden by its configuration's."""
    defaults = _list_default_variants(info) if info.reasoning else {}
    if not info.variants:
        return defaults
    variants: dict[str, JSON] = {}
    for name in (*defaults, *(name for name in info.variants if name not in defaults)):
        configured = info.variants.get(name, {})
        if configured.get("disabled") is not True:
            options = {key: value for key, value in configured.items() if key != "disabled"}
            variants[name] = merge_objects(defaults.get(name, {}), options)
    return variants


def resolve_variant(info: ModelInfo, name: str) -> str | None:
    """Return the variant to store for the user's choice; None: the service's default.
    Raises UnknownModel.
    """
    variants = list_variants(info)
    if name in variants:
        return name
    if name == NO_VARIANT:
        return None
    choices = (
        f"It has {', '.join(variants)}, and {NO_VARIANT} for none of them."
        if variants
        else "It has none: leave it out."
    )
    raise UnknownModel(
        f"The model `{info.ref}` has no variant `{name}`.{format_suggestion(find_similar(name, variants))} {choices}"
    )


def apply_variant(options: JSON, info: ModelInfo, name: str) -> JSON:
    """Return the options of a request with those of a variant over them;
    one that the model lacks adds nothing.
    """
    return merge_objects(options, list_variants(info).get(name, {}))


def _list_default_variants(info: ModelInfo) -> dict[str, JSON]:
    protocol, name = find_protocol(info), f"{info.id} {info.api_id}".lower()
    row = next(
        (row for row in VARIANT_ROWS if row.protocol == protocol and re.search(row.pattern, name)),
        None,
    )
    if row is None:
        return {}
    if row.variants is BUDGET_VARIANTS:
        return _fit_budgets(info.limits.output or MODEL_OUTPUT_TOKENS.value)
    return row.variants


@lru_cache(maxsize=256)
def _fit_budgets(output_limit: int) -> dict[str, JSON]:
    """Return the variants with budgets that leave half or a quarter of the output
    limit (tokens) for the answer.
    """
    most_tokens, variants = (
        {"high": output_limit // 2, "max": output_limit * 3 // 4},
        dict[str, JSON](),
    )
    for name, options in BUDGET_VARIANTS.items():
        budget = min(options["thinking"]["budgetTokens"], most_tokens[name])
        if budget >= MIN_BUDGET_TOKENS:
            variants[name] = {"thinking": {**options["thinking"], "budgetTokens": budget}}
    return variants
