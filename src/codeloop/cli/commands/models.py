"""`codeloop models`: the models that can be used, with limits and prices."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from codeloop.app.settings import ProjectSettings, Startup, find_settings, make_providers
from codeloop.cli.output.style import align_columns
from codeloop.cli.target.project import load_providers
from codeloop.client.formatting import format_count
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.refresh import refresh_catalog as fetch
from codeloop.model.catalog.vendors import EXPLICIT_PROVIDERS
from codeloop.model.chat import ModelInfo
from codeloop.model.credentials.environment import find_environment_key
from codeloop.model.errors import ModelUnavailable, NoModel
from codeloop.model.provider import EMPTY_PROVIDER_CONFIG
from codeloop.model.providers import NO_KEY_REASON, NO_MODEL_MESSAGE, Providers
from codeloop.model.usable_models import UNTRUSTED_REASON, ModelOffer, list_offers
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

HEADER = ("", "model", "context", "output", "$ in", "$ out", "$ cached", "")


@click.command()
@click.argument("provider", required=False)
@click.option("--all", "everything", is_flag=True, help="Include deprecated models, and unusable ones with the reason.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option("--refresh", is_flag=True, help="Fetch the latest catalog first.")
def models(provider: str | None, *, everything: bool, as_json: bool, refresh: bool) -> None:
    """List the models that can be used now, of one PROVIDER or of all. `*` marks the default.

    Prices are dollars per million tokens.
    """
    settings, providers = load_providers()
    if refresh:
        count = asyncio.run(fetch(settings.paths.cache, os.environ, Catalog()))
        click.echo(f"codeloop: Fetched the catalog: {count} providers.", err=True)
        settings, providers = load_providers()
    every, reasons, default = asyncio.run(_find_models(settings, providers, provider, everything=everything))
    offers = every if everything else [each for each in every if not each.problem and each.model.status != "deprecated"]
    if not provider and not everything:
        for line in _explain_unusable(providers, reasons):
            click.echo(f"codeloop: {line}", err=True)
    if not offers and provider:
        raise ModelUnavailable(_explain_empty_list(provider, every))
    if not offers:
        raise NoModel(NO_MODEL_MESSAGE)
    if as_json:
        rows = [_describe_model(each, default) for each in offers]
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2))
    else:
        lines = [HEADER, *(_format_row(each, default) for each in offers)]
        click.echo(align_columns(lines, right=frozenset({2, 3, 4, 5, 6})))


async def _find_models(
    settings: ProjectSettings, providers: Providers, provider: str | None, *, everything: bool
) -> tuple[list[ModelOffer], dict[str, str], str]:
    """Return the models, why providers can't be used, and the default `provider/model`."""
    try:
        default = await providers.choose_default()
    except ModelUnavailable:
        default = ""
    provider_ids = {each.id for each in providers.list_all()}
    untrusted_models = _list_untrusted_models(settings, provider_ids)
    if provider and provider not in provider_ids and provider not in {each.provider_id for each in untrusted_models}:
        # Raises an error with similar names.
        providers.get_provider(provider)
    rows, reasons = await list_offers(providers, [provider] if provider else provider_ids if everything else None)
    models = [each for each in untrusted_models if provider in {None, each.provider_id}]
    return [*rows, *(ModelOffer(each, UNTRUSTED_REASON) for each in models)], reasons, default


def _list_untrusted_models(settings: ProjectSettings, provider_ids: set[str]) -> list[ModelInfo]:
    """Return the models of providers that only an untrusted project's configuration has."""
    if not any(name.startswith("provider") for name in settings.loaded.ignored):
        return []
    with suppress(CodeloopError):
        providers = make_providers(find_settings(Startup(directory=Path.cwd(), trust=True)))
        return [
            model
            for each in providers.list_all()
            if each.id not in provider_ids
            for model in providers.list_all_models(each).values()
        ]
    return []


def _explain_unusable(providers: Providers, reasons: dict[str, str]) -> Iterator[str]:
    """Yield a line for each provider that has a key or is configured, and still can't be used."""
    stored_keys = providers.credentials.read_entries()
    for provider in providers.list_all():
        if provider.id not in reasons:
            continue
        environment_value = (
            find_environment_key(provider.env, os.environ) if provider.id not in EXPLICIT_PROVIDERS else None
        )
        has = (
            f"{environment_value[0]} is set"
            if environment_value
            else "a key is stored"
            if provider.id in stored_keys
            else ""
        )
        if has or provider.config is not EMPTY_PROVIDER_CONFIG:
            although = f", although {has}" if has else ""
            yield f"{provider.id} is not listed: {reasons[provider.id]}{although}. See: codeloop models --all"


def _explain_empty_list(provider: str, every: list[ModelOffer]) -> str:
    reasons = sorted({each.problem for each in every if each.problem})
    why = f": {'; '.join(reasons)}" if reasons else ""
    login = f" Store one: `codeloop auth login {provider}`." if NO_KEY_REASON in reasons else ""
    return f"No model of `{provider}` can be used here{why}.{login} `codeloop models {provider} --all` lists them."


def _format_row(offer: ModelOffer, default: str) -> tuple[str, ...]:
    model = offer.model
    limits, prices = model.limits, model.prices
    prices_shown = (prices.input, prices.output, prices.cache_read)
    return (
        "*" if model.ref == default else " ",
        model.ref,
        format_count(limits.context) if limits.context else "?",
        format_count(limits.output) if limits.output else "?",
        *(f"{price:.2f}" if price else "-" for price in prices_shown),
        ", ".join(word for word in ("" if model.status == "active" else model.status, offer.problem) if word),
    )


def _describe_model(offer: ModelOffer, default: str) -> JSON:
    """Return a model for `--json`: limits in tokens (0: unknown), prices in dollars per million tokens."""
    model = offer.model
    return {
        "ref": model.ref,
        "name": model.name,
        "default": model.ref == default,
        "status": model.status,
        "reasoning": model.reasoning,
        "reads": sorted(model.input),
        "context": model.limits.context,
        "output": model.limits.output,
        "input_price": model.prices.input,
        "output_price": model.prices.output,
        "cache_read_price": model.prices.cache_read,
        "cache_write_price": model.prices.cache_write,
        "usable": not offer.problem,
        "reason": offer.problem,
    }
