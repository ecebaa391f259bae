"""Tests of prices: the costs of requests by catalog and configuration,
checked with the services' own examples.
"""

from typing import Any

import msgspec
import pytest

from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.overrides import apply_overrides
from codeloop.model.catalog.packer import SourceModel, SourceProvider, pack_catalog
from codeloop.model.chat import Prices, PriceTier
from codeloop.model.protocols.anthropic.adapter import parse_usage as anthropic_tokens
from codeloop.model.protocols.bedrock.adapter import parse_usage as bedrock_tokens
from codeloop.model.protocols.chat_completions.adapter import parse_usage as chat_tokens
from codeloop.model.protocols.google.adapter import parse_usage as google_tokens
from codeloop.model.protocols.google_interactions.adapter import parse_usage as interaction_tokens
from codeloop.model.protocols.responses.adapter import parse_usage as responses_tokens
from codeloop.schema.message import CacheTokens, Tokens
from codeloop.schema.provider_config import ProviderConfig
from codeloop.schema.wire import replace

PRICES = Prices(2.0, 10.0, 0.2, 2.5, is_known=True)


@pytest.mark.parametrize(
    ("tokens", "dollars"),
    [
        # Of 2,006 tokens 1,920 come from the cache; reasoning is a part of the output.
        (
            chat_tokens(
                {
                    "prompt_tokens": 2006,
                    "completion_tokens": 300,
                    "total_tokens": 2306,
                    "prompt_tokens_details": {"cached_tokens": 1920, "audio_tokens": 0},
                    "completion_tokens_details": {"reasoning_tokens": 128, "audio_tokens": 0},
                }
            ),
            (86 * 2.0 + 300 * 10.0 + 1920 * 0.2) / 1e6,
        ),
        (
            responses_tokens(
                {
                    "input_tokens": 328,
                    "input_tokens_details": {"cached_tokens": 128},
                    "output_tokens": 52,
                    "output_tokens_details": {"reasoning_tokens": 40},
                    "total_tokens": 380,
                }
            ),
            (200 * 2.0 + 52 * 10.0 + 128 * 0.2) / 1e6,
        ),
        # The input count of Anthropic's leaves out what was read from the cache and written to it.
        (
            anthropic_tokens(
                {
                    "input_tokens": 50,
                    "cache_read_input_tokens": 100_000,
                    "cache_creation_input_tokens": 248,
                    "cache_creation": {
                        "ephemeral_5m_input_tokens": 248,
                        "ephemeral_1h_input_tokens": 0,
                    },
                    "output_tokens": 503,
                    "service_tier": "standard",
                }
            ),
            (50 * 2.0 + 503 * 10.0 + 100_000 * 0.2 + 248 * 2.5) / 1e6,
        ),
        # Writing to a cache that is kept for an hour costs twice the input; a batch costs half.
        (
            anthropic_tokens(
                {
                    "input_tokens": 2_048,
                    "cache_read_input_tokens": 1_800,
                    "cache_creation_input_tokens": 248,
                    "cache_creation": {
                        "ephemeral_5m_input_tokens": 148,
                        "ephemeral_1h_input_tokens": 100,
                    },
                    "output_tokens": 503,
                    "service_tier": "batch",
                }
            ),
            (2_048 * 2.0 + 503 * 10.0 + 1_800 * 0.2 + 148 * 2.5 + 100 * 4.0) / 2e6,
        ),
        # OpenAI's tiers: the one that waits costs half, the one that is quick twice as much.
        (
            chat_tokens({"prompt_tokens": 100, "completion_tokens": 10}, "flex"),
            (100 * 2.0 + 10 * 10.0) / 2e6,
        ),
        (
            responses_tokens({"input_tokens": 100, "output_tokens": 10}, "priority"),
            (100 * 2.0 + 10 * 10.0) / 0.5e6,
        ),
        # The tokens of an image cost as those of text;
        # thoughts of Gemini's cost as the answer does.
        (
            google_tokens(
                {
                    "promptTokenCount": 264,
                    "candidatesTokenCount": 80,
                    "thoughtsTokenCount": 20,
                    "totalTokenCount": 364,
                    "promptTokensDetails": [
                        {"modality": "TEXT", "tokenCount": 6},
                        {"modality": "IMAGE", "tokenCount": 258},
                    ],
                }
            ),
            (264 * 2.0 + 100 * 10.0) / 1e6,
        ),
        (
            interaction_tokens(
                {
                    "total_input_tokens": 258,
                    "total_cached_tokens": 58,
                    "total_output_tokens": 30,
                    "total_thought_tokens": 10,
                    "total_tokens": 298,
                    "input_tokens_by_modality": [{"modality": "image", "tokens": 258}],
                }
            ),
            (200 * 2.0 + 58 * 0.2 + 40 * 10.0) / 1e6,
        ),
        # Bedrock's input count leaves out cached tokens, too.
        (
            bedrock_tokens(
                {
                    "inputTokens": 30,
                    "outputTokens": 628,
                    "totalTokens": 658,
                    "cacheReadInputTokens": 100,
                    "cacheWriteInputTokens": 8,
                }
            ),
            (30 * 2.0 + 628 * 10.0 + 100 * 0.2 + 8 * 2.5) / 1e6,
        ),
        # DeepSeek's and Moonshot's own fields.
        (
            chat_tokens(
                {"prompt_tokens": 100, "completion_tokens": 1, "prompt_cache_hit_tokens": 64}
            ),
            (36 * 2.0 + 10.0 + 64 * 0.2) / 1e6,
        ),
    ],
)
def test_a_request_costs_what_the_services_own_example_says(tokens: Tokens, dollars: float) -> None:
    assert PRICES.compute_cost(tokens) == pytest.approx(dollars)


def prices_of(tmp_path: Any, **cost: Any) -> Prices:
    """Return the prices of a model by a catalog with this `cost`, stored and read again."""
    model = msgspec.convert({"id": "m", "tool_call": True, "cost": cost}, SourceModel)
    file = tmp_path / "catalog.bin"
    file.write_bytes(
        pack_catalog({"p": SourceProvider(id="p", name="P", models={"m": model})}, "2026-01-01")
    )
    found = Catalog(bundled=file).find_model("p", "m")
    assert found is not None
    return found.prices


def test_cached_tokens_without_a_price_are_not_free(tmp_path: Any) -> None:
    prices = prices_of(tmp_path, input=3, output=5)
    cached = Tokens(
        input=0, output=0, reasoning=0, cache=CacheTokens(read=1_000_000, write=1_000_000)
    )
    assert prices.compute_cost(cached) == 6.0
    assert prices_of(tmp_path, input=0, output=0).compute_cost(cached) == 0.0


def test_a_long_request_costs_what_the_service_asks_for_those(tmp_path: Any) -> None:
    long = {"input": 4, "output": 18, "cache_read": 0.4}
    prices = prices_of(tmp_path, input=2, output=12, cache_read=0.2, context_over_200k=long)
    short = Tokens(input=100_000, output=0, reasoning=0, cache=CacheTokens(read=100_000, write=0))
    assert prices.compute_cost(short) == pytest.approx(0.22)
    assert prices.compute_cost(
        Tokens(input=100_001, output=0, reasoning=0, cache=CacheTokens(read=100_000, write=0))
    ) == pytest.approx(0.440004)


def request_of(size: int, reasoning: int = 0, output: int = 0) -> Tokens:
    """Return the tokens of a request of this size."""
    return Tokens(
        input=size, output=output, reasoning=reasoning, cache=CacheTokens(read=0, write=0)
    )


def tier(size: Any, kind: str = "context", **prices: Any) -> dict[str, Any]:
    return {"tier": {"type": kind, "size": size}, **prices}


def test_prices_follow_all_lengths_that_the_catalog_names(tmp_path: Any) -> None:
    tiers = [
        tier(272_000, input=10, output=40),
        tier(128_000, input=4, output=20),
        tier(1, "batch", input=0, output=0),
    ]
    prices = prices_of(
        tmp_path, input=2, output=12, tiers=tiers, context_over_200k={"input": 99, "output": 99}
    )
    for size, dollars in [(128_000, 2), (128_001, 4), (200_001, 4), (272_000, 4), (272_001, 10)]:
        assert prices.compute_cost(request_of(size)) == pytest.approx(size * dollars / 1e6)
        assert prices.select_tier(request_of(size)).is_known


@pytest.mark.parametrize(
    "broken", ["free", [{"tier": None}], [tier("big", input=1, output=1)], {"tier": 1}]
)
def test_tiers_of_another_shape_leave_the_prices_that_are_known(tmp_path: Any, broken: Any) -> None:
    assert prices_of(tmp_path, input=2, output=12, tiers=broken) == Prices(
        2, 12, 2, 2, is_known=True
    )


def test_a_length_without_a_price_has_an_unknown_one(tmp_path: Any) -> None:
    prices = prices_of(tmp_path, input=2, output=12, tiers=[tier(128_000)])
    assert prices.select_tier(request_of(128_000)).is_known
    assert not prices.select_tier(request_of(128_001)).is_known


@pytest.mark.parametrize(
    ("said", "listed"), [(True, True), ({"supported": True}, True), ({"supported": False}, False)]
)
def test_a_model_that_calls_tools_is_known_in_either_form(
    tmp_path: Any, said: Any, *, listed: bool
) -> None:
    model = msgspec.convert({"id": "m", "tool_call": said}, SourceModel)
    file = tmp_path / "catalog.bin"
    file.write_bytes(
        pack_catalog({"p": SourceProvider(id="p", name="P", models={"m": model})}, "2026-01-01")
    )
    assert (Catalog(bundled=file).find_model("p", "m") is not None) == listed


def test_thinking_can_have_a_price_of_its_own(tmp_path: Any) -> None:
    prices = prices_of(tmp_path, input=1, output=2, reasoning=8)
    assert prices.compute_cost(request_of(0, reasoning=500_000, output=1_000_000)) == pytest.approx(
        5
    )
    assert prices_of(tmp_path, input=1, output=2, reasoning=2).reasoning is None


def test_an_unknown_price_is_unknown(tmp_path: Any) -> None:
    model = msgspec.convert({"id": "m", "tool_call": True}, SourceModel)
    file = tmp_path / "catalog.bin"
    file.write_bytes(
        pack_catalog({"p": SourceProvider(id="p", name="P", models={"m": model})}, "2026-01-01")
    )
    found = Catalog(bundled=file).find_model("p", "m")
    assert found is not None
    assert not found.prices.is_known


def test_the_configuration_names_prices_of_long_requests() -> None:
    cost: dict[str, Any] = {
        "input": 1,
        "output": 2,
        "context_over_200k": {"input": 2, "cache_read": 0.5},
    }
    cost["tiers"] = [tier(300_000, output=9, reasoning=10)]
    config = msgspec.convert({"models": {"m": {"cost": cost}}}, ProviderConfig)
    prices = apply_overrides({}, config, "p", "@ai-sdk/openai-compatible")["m"].prices
    over_200k = PriceTier(200_000, Prices(2, 2, 0.5, 2, is_known=True))
    assert prices.tiers == (over_200k, PriceTier(300_000, Prices(1, 9, 1, 1, 10, is_known=True)))
    assert replace(prices, tiers=()) == Prices(1, 2, 1, 1, is_known=True)
