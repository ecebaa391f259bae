"""The prices of a model, and what a request costs by them."""

import msgspec

from codeloop.schema.message import Tokens

LONG_REQUEST_TOKENS = 200_000
"""The prices of `context_over_200k`, the older form of price tiers, apply to longer requests."""
HOUR_WRITE_PRICE_FACTOR = 2.0
"""The price of tokens written to a cache that is kept for an hour,
as a multiple of the input price (Anthropic).
"""
SERVICE_TIER_FACTORS = {"flex": 0.5, "batch": 0.5, "priority": 2.0}
"""Service tier -> the factor by which it multiplies the standard prices.
A `PriceTier` is something else.
"""


class Prices(msgspec.Struct, frozen=True):
    """Dollars per million tokens. `is_known`: False where neither catalog nor
    configuration names a price.

    `reasoning`: the price of reasoning tokens; None: that of `output`. `tiers`: the prices of
    longer requests, the shortest first.
    """

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    reasoning: float | None = None
    is_known: bool = False
    tiers: "tuple[PriceTier, ...]" = ()

    def compute_cost(self, tokens: Tokens) -> float:
        """Return the price of a request in dollars. Reasoning is part of `output`,
        one-hour writes of `cache.write`.
        """
        prices = self.select_tier(tokens)
        reasoning = tokens.reasoning if prices.reasoning is not None else 0
        dollars = (
            tokens.input * prices.input
            + (tokens.output - reasoning) * prices.output
            + reasoning * (prices.reasoning or 0.0)
            + tokens.cache.read * prices.cache_read
            + tokens.cache.write * prices.cache_write
            + tokens.cache.hour_write * (prices.hour_write - prices.cache_write)
        )
        return dollars * SERVICE_TIER_FACTORS.get(tokens.tier, 1.0) / 1_000_000

    def select_tier(self, tokens: Tokens) -> "Prices":
        """Return the prices that apply to a request of this length;
        services bill a whole request by one tier.
        """
        for tier in reversed(self.tiers):
            if tokens.context > tier.above_tokens:
                return tier.prices
        return self

    @property
    def hour_write(self) -> float:
        """The price of tokens that are written to a cache which is kept for an hour."""
        # Where writing costs no more than input, the service has no caches of different lifetimes.
        return (
            self.input * HOUR_WRITE_PRICE_FACTOR
            if self.cache_write > self.input
            else self.cache_write
        )


class PriceTier(msgspec.Struct, frozen=True):
    """The prices of a whole request whose context has more than `above_tokens` tokens."""

    above_tokens: int
    prices: Prices
