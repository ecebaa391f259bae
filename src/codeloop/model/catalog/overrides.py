"""Merges the configuration's `provider.<id>.models` into the catalog's models; `Providers` uses it.
Pure.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from codeloop.model.chat import LONG_REQUEST_TOKENS, ModelInfo, Prices, PriceTier, TokenLimits
from codeloop.schema.provider_config import (
    ModelConfig,
    ModelCostConfig,
    ModelLimitConfig,
    PricesConfig,
    ProviderConfig,
)
from codeloop.schema.wire import replace

Value = TypeVar("Value")


def apply_overrides(
    catalog_models: Mapping[str, ModelInfo],
    config: ProviderConfig,
    provider_id: str,
    npm: str,
    *,
    include_excluded: bool = False,
) -> dict[str, ModelInfo]:
    """Return a provider's models: the catalog's, with the configuration's changes and additions,
    filtered by its lists.

    `npm` is the protocol of models that the catalog does not know.
    `include_excluded`: do not filter.
    """
    models = dict(catalog_models)
    # Before the rows of models, which may set a protocol of their own.
    if config.npm:
        models = {
            name: msgspec.structs.replace(model, npm=config.npm) for name, model in models.items()
        }
    for name, row in config.models.items():
        # `id` of a row is the service's name: a second name for a model of the catalog
        # gets that model's data.
        plain = ModelInfo(provider_id=provider_id, id=name, name=name, npm=npm)
        models[name] = _override_model(
            models.get(name) or models.get(row.id or "") or plain, name, row
        )
    enabled_models = {
        name: model
        for name, model in models.items()
        if include_excluded or is_allowed(name, config)
    }
    protocol = config.options.get("protocol")
    if not protocol:
        return enabled_models
    return {
        name: msgspec.structs.replace(model, protocol=str(protocol))
        for name, model in enabled_models.items()
    }


def is_allowed(name: str, config: ProviderConfig) -> bool:
    """Return whether the configuration lets the model be used: `disabled`, `whitelist`,
    `blacklist`.
    """
    row = config.models.get(name)
    if row is not None and row.disabled:
        return False
    if config.whitelist is not None and name not in config.whitelist:
        return False
    return name not in (config.blacklist or [])


def _override_model(model: ModelInfo, name: str, row: ModelConfig) -> ModelInfo:
    modalities = row.modalities.input if row.modalities else None
    field = row.interleaved.get("field", "") if isinstance(row.interleaved, dict) else None
    return msgspec.structs.replace(
        model,
        id=name,
        npm=(row.provider.npm if row.provider else None) or model.npm,
        # A name of the user's own for a model of the catalog: the service knows the
        # model by its name there.
        api_id=row.id or (model.api_id or model.id if model.id != name else model.api_id),
        name=row.name or (name if model.id != name else model.name),
        limits=_override_limits(model.limits, row.limit),
        answer_limit=(row.limit.output if row.limit else None) or model.answer_limit,
        prices=_override_prices(model.prices, row.cost),
        tool_call=_choose_value(row.tool_call, model.tool_call),
        reasoning=_choose_value(row.reasoning, model.reasoning),
        temperature=_choose_value(row.temperature, model.temperature),
        attachment=_choose_value(row.attachment, model.attachment),
        input=frozenset(modalities) if modalities is not None else model.input,
        reasoning_field=str(field) if field is not None else model.reasoning_field,
        options={**model.options, **row.options},
        headers={**model.headers, **row.headers},
        variants={**model.variants, **row.variants},
        small=_choose_value(row.small, model.small),
    )


def _choose_value(value: Value | None, fallback: Value) -> Value:
    """Return a configured value; where there is none (None), the fallback."""
    return fallback if value is None else value


def _override_limits(limits: TokenLimits, config: ModelLimitConfig | None) -> TokenLimits:
    if config is None:
        return limits
    return TokenLimits(
        context=_choose_value(config.context, limits.context),
        output=_choose_value(config.output, limits.output),
        input=_choose_value(config.input, limits.input),
    )


def _override_prices(prices: Prices, config: ModelCostConfig | None) -> Prices:
    if config is None:
        return prices
    base = _change_prices(prices, config)
    tiers = {tier.above_tokens: tier.prices for tier in prices.tiers}
    configured = {
        each.tier.size: each for each in config.tiers or () if each.tier.type == "context"
    }
    if config.context_over_200k is not None:
        # An explicit tier of the same size takes precedence.
        configured = {LONG_REQUEST_TOKENS: config.context_over_200k, **configured}
    for above, each in configured.items():
        tiers[above] = _change_prices(tiers.get(above) or replace(base, tiers=()), each)
    return replace(base, tiers=tuple(PriceTier(above, tiers[above]) for above in sorted(tiers)))


def _change_prices(prices: Prices, config: PricesConfig) -> Prices:
    """Return prices with the configured ones. Cached tokens without a price
    cost as much as input.
    """
    input_price = _choose_value(config.input, prices.input)
    return replace(
        prices,
        input=input_price,
        output=_choose_value(config.output, prices.output),
        reasoning=_choose_value(config.reasoning, prices.reasoning),
        # A catalog's price of cached tokens is kept; one that only repeats the old price of
        # input follows the new one.
        cache_read=_choose_value(
            config.cache_read,
            input_price if prices.cache_read in {0.0, prices.input} else prices.cache_read,
        ),
        cache_write=_choose_value(
            config.cache_write,
            input_price if prices.cache_write in {0.0, prices.input} else prices.cache_write,
        ),
        is_known=prices.is_known or (config.input is not None and config.output is not None),
    )
