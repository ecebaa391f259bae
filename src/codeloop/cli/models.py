"""`codeloop models`: what can be used, with limits and prices."""

import os
from collections.abc import Iterable

import click
import msgspec

from codeloop.cli.style import count
from codeloop.cli.table import columns, open_table
from codeloop.model.catalog import Catalog
from codeloop.model.chat import ModelInfo
from codeloop.model.providers import NO_MODEL, Providers
from codeloop.model.refresh import refresh as fetch
from codeloop.model.unavailable import ModelUnavailable, NoModel

HEAD = ("", "model", "context", "output", "$ in", "$ out", "$ cached", "")


class Row(msgspec.Struct, frozen=True):
    """A model in `--json`: limits in tokens (0: unknown), prices in dollars per million tokens."""

    ref: str
    name: str
    default: bool
    status: str
    reasoning: bool
    reads: list[str]
    context: int
    output: int
    input_price: float
    output_price: float
    cache_read_price: float
    cache_write_price: float


@click.command()
@click.argument("provider", required=False)
@click.option("--all", "everything", is_flag=True, help="Also providers without a key, and deprecated models.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
@click.option("--refresh", is_flag=True, help="Fetch the newest catalog first.")
def models(provider: str | None, *, everything: bool, as_json: bool, refresh: bool) -> None:
    """List the models that can be used, of one PROVIDER or of all that have a key. `*` marks the default.

    Prices are dollars per million tokens.
    """
    import asyncio

    table = open_table()
    if refresh:
        found = asyncio.run(fetch(table.paths.cache, os.environ, Catalog()))
        click.echo(f"Fetched the catalog: {found} providers.", err=True)
        table = open_table()
    listed, default = asyncio.run(_listed(table.providers, provider, everything=everything))
    if as_json:
        rows = [_row(model, default) for model in listed]
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2))
    elif listed:
        lines = [HEAD, *(_cells(model, default) for model in listed)]
        click.echo(columns(lines, right=frozenset({2, 3, 4, 5, 6})))
    elif provider:
        raise ModelUnavailable(f"No model of `{provider}` can call tools. `codeloop models --all` lists others.")
    else:
        raise NoModel(NO_MODEL)


async def _listed(providers: Providers, provider: str | None, *, everything: bool) -> tuple[list[ModelInfo], str]:
    """Give the models to list, and the `provider/model` that is used when none is named (empty: there is none)."""
    try:
        default = await providers.default()
    except ModelUnavailable:
        default = ""
    if provider:
        ids = [providers.provider(provider).id]
    elif everything:
        ids = [row.id for row in providers.all()]
    else:
        ids = [usable.provider.id for usable in providers.usable()]
    found = [model for name in ids for model in _of(providers, name, everything=everything)]
    known = {model.ref for model in found}
    for server in await providers.answering():
        refs = [f"{server.server.id}/{model}" for model in server.models]
        if provider in {None, server.server.id}:
            found += [providers.info(ref) for ref in refs if ref not in known]
    return found, default


def _of(providers: Providers, provider: str, *, everything: bool) -> Iterable[ModelInfo]:
    shown = (model for model in providers.models(provider).values() if everything or model.status != "deprecated")
    return sorted(shown, key=lambda model: model.release_date, reverse=True)


def _cells(model: ModelInfo, default: str) -> tuple[str, ...]:
    limits, prices = model.limits, model.prices
    paid = (prices.input, prices.output, prices.cache_read)
    return (
        "*" if model.ref == default else " ",
        model.ref,
        count(limits.context) if limits.context else "?",
        count(limits.output) if limits.output else "?",
        *(f"{price:.2f}" if price else "-" for price in paid),
        "" if model.status == "active" else model.status,
    )


def _row(model: ModelInfo, default: str) -> Row:
    return Row(
        ref=model.ref,
        name=model.name,
        default=model.ref == default,
        status=model.status,
        reasoning=model.reasoning,
        reads=sorted(model.input),
        context=model.limits.context,
        output=model.limits.output,
        input_price=model.prices.input,
        output_price=model.prices.output,
        cache_read_price=model.prices.cache_read,
        cache_write_price=model.prices.cache_write,
    )
