"""Merges the configuration's `provider.<id>.models` into the catalog's models. Pure."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from codeloop.model.catalog.services import protocol_elsewhere
from codeloop.model.chat import Limits, ModelInfo, Prices, PriceTier
from codeloop.schema.config import ModelConfig, ModelCostConfig, ModelLimitConfig, PricesConfig, ProviderConfig
from codeloop.schema.wire import replace

T = TypeVar("T")


def apply_overrides(
    known: Mapping[str, ModelInfo], config: ProviderConfig, provider_id: str, npm: str, *, everything: bool = False
) -> dict[str, ModelInfo]:
    """Return the provider's models: the catalog's, changed and added to by the configuration, filtered by its lists.

    `npm` is the protocol of models that the catalog does not know. `everything`: those that its lists exclude, too.
    """
    models = dict(known)
    if config.npm:
        models = {name: msgspec.structs.replace(model, npm=config.npm) for name, model in models.items()}
    for name, row in config.models.items():
        plain = ModelInfo(provider_id=provider_id, id=name, name=name, npm=npm)
        models[name] = _model(models.get(name) or models.get(row.id or "") or plain, name, row)
    allowed = {name: model for name, model in models.items() if everything or is_allowed(name, config)}
    protocol, url = config.options.get("protocol"), config.options.get("baseURL") or config.api
    if not protocol and not url:
        return allowed
    host = urlsplit(str(url)).hostname or ""
    return {
        name: msgspec.structs.replace(model, protocol=str(protocol or protocol_elsewhere(model.npm, host)))
        for name, model in allowed.items()
    }


def is_allowed(name: str, config: ProviderConfig) -> bool:
    """Return whether the configuration lets the model be used: `disabled`, `whitelist`, `blacklist`."""
    row = config.models.get(name)
    if row is not None and row.disabled:
        return False
    if config.whitelist is not None and name not in config.whitelist:
        return False
    return name not in (config.blacklist or [])


def _model(model: ModelInfo, name: str, row: ModelConfig) -> ModelInfo:
    reads = row.modalities.input if row.modalities and row.modalities.input is not None else None
    field = row.interleaved.get("field", "") if isinstance(row.interleaved, dict) else None
    return msgspec.structs.replace(
        model,
        id=name,
        npm=(row.provider.npm if row.provider else None) or model.npm,
        api_id=row.id or (model.api_id or model.id if model.id != name else model.api_id),
        name=row.name or (name if model.id != name else model.name),
        limits=_limits(model.limits, row.limit),
        answer_limit=(row.limit.output if row.limit else None) or model.answer_limit,
        prices=_prices(model.prices, row.cost),
        tool_call=_first_set(row.tool_call, model.tool_call),
        reasoning=_first_set(row.reasoning, model.reasoning),
        temperature=_first_set(row.temperature, model.temperature),
        attachment=_first_set(row.attachment, model.attachment),
        input=frozenset(reads) if reads is not None else model.input,
        reasoning_field=str(field) if field is not None else model.reasoning_field,
        options={**model.options, **row.options},
        headers={**model.headers, **row.headers},
        variants={**model.variants, **row.variants},
        small=_first_set(row.small, model.small),
    )


def _first_set(value: T | None, fallback: T) -> T:
    return fallback if value is None else value


def _limits(limits: Limits, model_limit_config: ModelLimitConfig | None) -> Limits:
    if model_limit_config is None:
        return limits
    return Limits(
        context=_first_set(model_limit_config.context, limits.context),
        output=_first_set(model_limit_config.output, limits.output),
        input=_first_set(model_limit_config.input, limits.input),
    )


def _prices(prices: Prices, model_cost_config: ModelCostConfig | None) -> Prices:
    if model_cost_config is None:
        return prices
    changed = _change_prices(prices, model_cost_config)
    tiers = {tier.above: tier.prices for tier in prices.tiers}
    longer = {each.tier.size: each for each in model_cost_config.tiers or () if each.tier.type == "context"}
    if model_cost_config.context_over_200k is not None:
        longer = {200_000: model_cost_config.context_over_200k, **longer}
    for above, each in longer.items():
        tiers[above] = _change_prices(tiers.get(above) or replace(changed, tiers=()), each)
    return replace(changed, tiers=tuple(PriceTier(above, tiers[above]) for above in sorted(tiers)))


def _change_prices(prices: Prices, long_cost_config: PricesConfig) -> Prices:
    """Return prices with the configured ones. Cached tokens without a price cost as much as input."""
    first = _first_set(long_cost_config.input, prices.input)
    return replace(
        prices,
        input=first,
        output=_first_set(long_cost_config.output, prices.output),
        reasoning=_first_set(long_cost_config.reasoning, prices.reasoning),
        cache_read=_first_set(
            long_cost_config.cache_read, first if prices.cache_read in {0.0, prices.input} else prices.cache_read
        ),
        cache_write=_first_set(
            long_cost_config.cache_write, first if prices.cache_write in {0.0, prices.input} else prices.cache_write
        ),
        is_known=prices.is_known or (long_cost_config.input is not None and long_cost_config.output is not None),
    )
