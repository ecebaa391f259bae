"""Tests of variants: the default ones of each kind of model, and those of the configuration."""

from typing import Any

import msgspec
import pytest

from codeloop.kit.jsonc import merge_objects
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.overrides import apply_overrides
from codeloop.model.catalog.variants import apply_variant, list_variants, resolve_variant
from codeloop.model.chat import ModelInfo, TokenLimits
from codeloop.model.errors import UnknownModel
from codeloop.schema.provider_config import ProviderConfig
from codeloop.schema.wire import replace

CATALOG = Catalog()
EFFORTS = ["low", "medium", "high"]


def shipped(ref: str) -> ModelInfo:
    provider_id, _, model_id = ref.partition("/")
    provider = CATALOG.find_provider(provider_id)
    assert provider is not None
    return provider.models[model_id]


def thinker(npm: str, *, output: int = 0, **variants: Any) -> ModelInfo:
    return ModelInfo(
        provider_id="p",
        id="m",
        name="M",
        npm=npm,
        reasoning=True,
        limits=TokenLimits(output=output),
        variants=variants,
    )


@pytest.mark.parametrize(
    ("ref", "names"),
    [
        ("openai/gpt-6-sol", EFFORTS),
        ("openai/gpt-4o", []),
        ("groq/openai/gpt-oss-120b", EFFORTS),
        ("groq/qwen/qwen3.6-27b", []),
        ("minimax/MiniMax-M2.5", ["high", "max"]),
        ("anthropic/claude-opus-4-5", ["high", "max"]),
        ("anthropic/claude-opus-4-6", ["high", "max"]),
        ("anthropic/claude-haiku-4-5-20251001", ["high", "max"]),
        ("anthropic/claude-opus-4-7", [*EFFORTS, "max"]),
        ("anthropic/claude-sonnet-5", [*EFFORTS, "max"]),
        ("google/gemini-3-flash-preview", EFFORTS),
        ("google/gemini-2.5-pro", ["low", "high"]),
        ("google-vertex/claude-opus-4-8@default", [*EFFORTS, "max"]),
        ("amazon-bedrock/us.anthropic.claude-sonnet-5", [*EFFORTS, "max"]),
        ("amazon-bedrock/amazon.nova-2-lite-v1:0", EFFORTS),
    ],
)
def test_each_kind_of_model_has_its_own(ref: str, names: list[str]) -> None:
    assert list(list_variants(shipped(ref))) == names


@pytest.mark.parametrize(
    ("output", "budgets"),
    [
        (0, [16_000, 24_000]),
        (64_000, [16_000, 32_000]),
        (32_000, [16_000, 24_000]),
        (8_000, [4_000, 6_000]),
        (1_000, []),
    ],
)
def test_a_budget_leaves_room_for_the_answer(output: int, budgets: list[int]) -> None:
    found = list_variants(thinker("@ai-sdk/anthropic", output=output))
    assert [each["thinking"]["budgetTokens"] for each in found.values()] == budgets


def test_the_configuration_changes_adds_and_takes_away() -> None:
    row = {
        "reasoning": True,
        "variants": {
            "low": {"disabled": True},
            "high": {"textVerbosity": "high"},
            "own": {"reasoningEffort": "minimal", "disabled": False},
        },
    }
    config = msgspec.convert({"models": {"m": row}}, ProviderConfig)
    found = list_variants(apply_overrides({}, config, "p", "@ai-sdk/openai-compatible")["m"])
    assert found == {
        "medium": {"reasoningEffort": "medium"},
        "high": {"reasoningEffort": "high", "textVerbosity": "high"},
        "own": {"reasoningEffort": "minimal"},
    }


def test_a_model_of_which_nothing_is_known_has_those_of_the_configuration() -> None:
    info = replace(thinker("@ai-sdk/openai-compatible", own={"top_k": 3}), reasoning=False)
    assert list_variants(info) == {"own": {"top_k": 3}}


def test_of_two_spellings_the_laid_over_one_comes_last() -> None:
    over = merge_objects(
        {"reasoningEffort": "low", "reasoning_effort": "low", "a": {"x": 1, "y": 1}},
        {"a": {"y": 2}},
    )
    assert over == {"reasoningEffort": "low", "reasoning_effort": "low", "a": {"x": 1, "y": 2}}
    assert list(
        merge_objects(
            {"reasoningEffort": "low", "reasoning_effort": "low"}, {"reasoningEffort": "high"}
        )
    ) == [
        "reasoning_effort",
        "reasoningEffort",
    ]


def test_an_unknown_one_is_an_error_that_names_those_there_are() -> None:
    info = thinker("@ai-sdk/openai-compatible")
    assert resolve_variant(info, "high") == "high"
    assert resolve_variant(info, "default") is None
    with pytest.raises(
        UnknownModel, match=r"`p/m` has no variant `hihg`.* `high`.* It has low, medium, high"
    ):
        resolve_variant(info, "hihg")
    with pytest.raises(UnknownModel, match="It has none: leave it out"):
        resolve_variant(replace(info, reasoning=False), "high")
    assert apply_variant({"a": 1}, info, "gone") == {"a": 1}
