"""The variants of a model: efforts to think with, by name, each a set of options of its requests."""

import re
from functools import lru_cache
from typing import NamedTuple

from codeloop.kit.suggest import meant, near
from codeloop.model.catalog.vendors import PROTOCOLS, Protocol
from codeloop.model.chat import ModelInfo
from codeloop.model.errors import UnknownModel
from codeloop.model.wire.response import is_json_object
from codeloop.schema.limits import MODEL_OUTPUT
from codeloop.schema.message import NO_VARIANT
from codeloop.schema.wire import JSON

LEAST_BUDGET = 1_024
"""Tokens; the messages protocol refuses a smaller budget."""


class VariantRow(NamedTuple):
    """The variants of the models of a protocol that reason and whose id the pattern is found in."""

    protocol: Protocol
    pattern: str
    """A regular expression over the id in lower case."""
    variants: dict[str, JSON]


EFFORT: dict[str, JSON] = {name: {"reasoningEffort": name} for name in ("low", "medium", "high")}
ADAPTIVE: dict[str, JSON] = {
    name: {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": name}}
    for name in ("low", "medium", "high", "max")
}
BUDGET: dict[str, JSON] = {
    name: {"thinking": {"type": "enabled", "budgetTokens": tokens}}
    for name, tokens in (("high", 16_000), ("max", 32_000))
}

ROWS = (
    VariantRow("openai-chat", r"minimax|kimi-k2|glm-4|mistral|magistral|qwen|deepseek-(r1|v3)", {}),
    VariantRow("openai-chat", "", EFFORT),
    VariantRow("anthropic-messages", r"claude-(opus|sonnet|haiku|fable)-(4[.-][7-9]|[5-9])", ADAPTIVE),
    VariantRow("anthropic-messages", "", BUDGET),
)
"""The first that fits counts. Empty: the models take no effort, they refuse it or pass it over."""


def variants_of(info: ModelInfo) -> dict[str, JSON]:
    """Return the variants of a model: its row's, and over them those that its configuration names."""
    shipped = _shipped(info) if info.reasoning else {}
    if not info.variants:
        return shipped
    found: dict[str, JSON] = {}
    for name in (*shipped, *(name for name in info.variants if name not in shipped)):
        said = info.variants.get(name, {})
        if said.get("disabled") is not True:
            found[name] = merged(shipped.get(name, {}), {key: said[key] for key in said if key != "disabled"})
    return found


def chosen_variant(info: ModelInfo, name: str) -> str | None:
    """Return the variant to store for a choice; None: none, as the service decides. Raises UnknownModel."""
    known = variants_of(info)
    if name in known:
        return name
    if name == NO_VARIANT:
        return None
    there = f"It has {', '.join(known)}, and {NO_VARIANT} for none of them." if known else "It has none: leave it out."
    raise UnknownModel(f"The model `{info.ref}` has no variant `{name}`.{meant(near(name, known))} {there}")


def with_variant(options: JSON, info: ModelInfo, name: str) -> JSON:
    """Return the options of a request with those of a variant over them; one that the model lacks adds nothing."""
    return merged(options, variants_of(info).get(name, {}))


def merged(options: JSON, over: JSON) -> JSON:
    """Lay options over others, objects key by key.

    What is laid over comes last: of two spellings of one option the later counts.
    """
    found = {key: value for key, value in options.items() if key not in over}
    for key, value in over.items():
        before = options.get(key)
        found[key] = merged(before, value) if is_json_object(before) and is_json_object(value) else value
    return found


def _shipped(info: ModelInfo) -> dict[str, JSON]:
    protocol, name = PROTOCOLS.get(info.npm), f"{info.id} {info.api_id}".lower()
    found = next((row for row in ROWS if row.protocol == protocol and re.search(row.pattern, name)), None)
    if found is None:
        return {}
    return _fitting(info.limits.output or MODEL_OUTPUT.value) if found.variants is BUDGET else found.variants


@lru_cache(maxsize=256)
def _fitting(output: int) -> dict[str, JSON]:
    """Return the budgets for a model that can say so many tokens: the answer keeps a half of them, or a quarter."""
    shares, found = {"high": output // 2, "max": output * 3 // 4}, dict[str, JSON]()
    for name, options in BUDGET.items():
        budget = min(options["thinking"]["budgetTokens"], shares[name])
        if budget >= LEAST_BUDGET:
            found[name] = {"thinking": {**options["thinking"], "budgetTokens": budget}}
    return found
