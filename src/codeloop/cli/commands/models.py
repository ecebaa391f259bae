"""`codeloop models`: lists the models that can be used, with their limits and prices."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from codeloop.app.models.open_models import make_providers
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.cli.output.columns import align_columns
from codeloop.cli.target.project import load_providers
from codeloop.client.formatting import format_count
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.refresh import refresh_catalog
from codeloop.model.catalog.vendors import EXPLICIT_PROVIDERS
from codeloop.model.chat import ModelInfo
from codeloop.model.credentials.environment import find_environment_key
from codeloop.model.default_model import NO_MODEL_MESSAGE, choose_default
from codeloop.model.errors import ModelUnavailable, NoModel
from codeloop.model.provider import EMPTY_PROVIDER_CONFIG
from codeloop.model.providers import Providers
from codeloop.model.usable_models import NO_KEY_REASON, ModelOffer, list_offers
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON

# The columns without a heading: the mark of the default,
# and the model's status with the reason why it is unusable.
HEADER = ("", "model", "context", "output", "$ in", "$ out", "$ cached", "")
UNTRUSTED_REASON = "untrusted: `codeloop trust` lets this project's configuration count"


@click.command()
@click.argument("provider", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Include deprecated models, and unusable ones with the reason.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option("--refresh", is_flag=True, help="Fetch the latest catalog first.")
def models(provider: str | None, *, everything: bool, as_json: bool, refresh: bool) -> None:
    """List the models that can be used now, of one PROVIDER or of all. `*` marks the default.

    Prices are dollars per million tokens.
    """
    settings, providers = load_providers()
    if refresh:
        provider_count = asyncio.run(refresh_catalog(settings.paths.cache, os.environ, Catalog()))
        click.echo(f"codeloop: Fetched the catalog: {provider_count} providers.", err=True)
        # The providers that were loaded above still hold the old catalog.
        settings, providers = load_providers()
    all_offers, reasons, default = asyncio.run(
        _find_models(settings, providers, provider, everything=everything)
    )
    offers = all_offers
    if not everything:
        offers = [
            offer
            for offer in all_offers
            if not offer.problem and offer.model.status != "deprecated"
        ]
    if not provider and not everything:
        for line in _explain_unusable(providers, reasons):
            click.echo(f"codeloop: {line}", err=True)
    if not offers and provider:
        raise ModelUnavailable(_explain_empty_list(provider, all_offers))
    if not offers:
        raise NoModel(NO_MODEL_MESSAGE)
    if as_json:
        rows = [_describe_model(offer, default) for offer in offers]
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2))
    else:
        table_rows = [HEADER, *(_format_row(offer, default) for offer in offers)]
        click.echo(align_columns(table_rows, right=frozenset({2, 3, 4, 5, 6})))


async def _find_models(
    settings: ProjectSettings, providers: Providers, provider: str | None, *, everything: bool
) -> tuple[list[ModelOffer], dict[str, str], str]:
    """Return the models, the reasons of providers that can't be used by their ids,
    and the default `provider/model`.
    """
    try:
        default = await choose_default(providers)
    except ModelUnavailable:
        default = ""
    provider_ids = {row.id for row in providers.list_all()}
    untrusted_models = _list_untrusted_models(settings, provider_ids)
    if (
        provider
        and provider not in provider_ids
        and provider not in {model.provider_id for model in untrusted_models}
    ):
        # Raises an error that suggests similar names.
        providers.get_provider(provider)
    # None: all providers, but without the models of those that can't be used.
    wanted_ids = provider_ids if everything else None
    offers, reasons = await list_offers(providers, [provider] if provider else wanted_ids)
    models = [model for model in untrusted_models if provider in {None, model.provider_id}]
    return [*offers, *(ModelOffer(model, UNTRUSTED_REASON) for model in models)], reasons, default


def _list_untrusted_models(settings: ProjectSettings, provider_ids: set[str]) -> list[ModelInfo]:
    """Return the models of providers that only the configuration of an
    untrusted project defines.
    """
    if not any(name.startswith("provider") for name in settings.loaded.ignored):
        return []
    # The ignored part of the configuration may be invalid, which is not an error of this command.
    with suppress(CodeloopError):
        providers = make_providers(find_settings(Startup(directory=Path.cwd(), trust=True)))
        return [
            model
            for provider in providers.list_all()
            if provider.id not in provider_ids
            for model in providers.list_all_models(provider).values()
        ]
    return []


def _explain_unusable(providers: Providers, reasons: dict[str, str]) -> Iterator[str]:
    """Yield a line for each provider that has a key or is configured, and still can't be used."""
    stored_keys = providers.credentials.read_entries()
    for provider in providers.list_all():
        if provider.id not in reasons:
            continue
        key_note = ""
        # The variables of `EXPLICIT_PROVIDERS` (GITHUB_TOKEN, HF_TOKEN,
        # ...) mostly have another purpose.
        if provider.id not in EXPLICIT_PROVIDERS and (
            variable := find_environment_key(provider.env, os.environ)
        ):
            key_note = f"{variable[0]} is set"
        elif provider.id in stored_keys:
            key_note = "a key is stored"
        if key_note or provider.config is not EMPTY_PROVIDER_CONFIG:
            although = f", although {key_note}" if key_note else ""
            yield f"{provider.id} is not listed: {reasons[provider.id]}{although}. See: codeloop models --all"


def _explain_empty_list(provider: str, offers: list[ModelOffer]) -> str:
    reasons = sorted({offer.problem for offer in offers if offer.problem})
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
        ", ".join(filter(None, ("" if model.status == "active" else model.status, offer.problem))),
    )


def _describe_model(offer: ModelOffer, default: str) -> JSON:
    """Return a model for `--json`: limits in tokens (0: unknown),
    prices in dollars per million tokens.
    """
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
