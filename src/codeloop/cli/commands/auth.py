"""`codeloop auth`: store, list and remove keys. Nothing is sent; keys are never printed."""

import os
import sys
from collections.abc import Set as AbstractSet

import click

from codeloop.cli.exit_codes import UsageProblem
from codeloop.cli.group import Group
from codeloop.cli.output.columns import columns
from codeloop.cli.target.provider_table import Table, open_table
from codeloop.model.credentials.environment import environment_key
from codeloop.model.credentials.store import masked
from codeloop.model.errors import ModelUnavailable, UnknownModel, UnspokenProtocol
from codeloop.model.origin import origin
from codeloop.model.provider import Provider, resolved_url
from codeloop.model.providers import NO_KEY
from codeloop.schema.limits import KEY_LENGTH


@click.group(cls=Group)
def auth() -> None:
    """Store, list and remove keys of providers."""


@auth.command()
@click.argument("provider", required=False)
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input (the first line).")
@click.option("--base-url", help="The address that the key is for, when it is not the provider's own.")
def login(provider: str | None, *, key_stdin: bool, base_url: str | None) -> None:
    """Store a key for PROVIDER. It is only ever sent to the address that it is stored for."""
    table = open_table()
    interactive = sys.stdin.isatty() and not key_stdin
    if provider is None:
        if not interactive:
            raise UsageProblem("Name the provider: codeloop auth login PROVIDER --key-stdin")
        provider = str(click.prompt("Provider (such as anthropic, openai, openrouter)", err=True)).strip()
    url = base_url or _own_url(table, provider)
    place = origin(url)
    key = str(click.prompt(f"Key for {place}", hide_input=True, err=True)) if interactive else _from_stdin()
    key = key.strip()
    if not key or len(key) > KEY_LENGTH.value or not key.isascii() or not key.isprintable() or " " in key:
        raise UsageProblem("That is no key: it must be one word of plain characters. Nothing was stored.")
    stored = table.credentials.put(provider, key, url)
    click.echo(f"Stored the key {masked(key)} of {provider} for {stored.origin} in {table.credentials.path}.")
    _tell_what_comes_first(table, provider)


@auth.command("list")
def list_keys() -> None:
    """List the keys that are stored, set in the environment or configured, masked, with the address of each."""
    table = open_table()
    rows: list[tuple[str, ...]] = []
    stored = table.credentials.entries()
    for provider in table.providers.every():
        place, note = _place(provider.url), _note(table, provider, stored.keys())
        if provider.configured_key:
            found = table.settings.loaded.written(("provider", provider.id, "options", "apiKey"))
            rows.append(
                (provider.id, masked(provider.configured_key), place, found[0] if found else "configuration", note)
            )
        held = environment_key(provider.env, os.environ)
        if held is not None:
            rows.append((provider.id, masked(held[1]), place, f"environment {held[0]}", note))
    known = {provider.id: provider for provider in table.providers.every()}
    for provider_id, entry in sorted(stored.items()):
        place = entry.origin or _home(table, provider_id)
        note = _note(table, known[provider_id], stored.keys()) if provider_id in known else "provider not known"
        rows.append((provider_id, masked(entry.key), place, str(table.credentials.path), note))
    if not rows:
        click.echo("No key is stored or set. Store one with `codeloop auth login PROVIDER`.")
        return
    click.echo(columns([("provider", "key", "for", "from", ""), *rows]))
    if table.credentials.open_to_others():
        click.echo(
            f"codeloop: Others can read {table.credentials.path}. Run: chmod 600 {table.credentials.path}", err=True
        )


@auth.command()
@click.argument("provider")
def logout(provider: str) -> None:
    """Remove the stored key of PROVIDER."""
    credentials = open_table().credentials
    if not credentials.remove(provider):
        known = ", ".join(sorted(credentials.entries())) or "none"
        raise UnknownModel(f"No key of `{provider}` is stored in {credentials.path} (stored: {known}).")
    click.echo(f"Removed the key of {provider} from {credentials.path}.")


def _own_url(table: Table, provider: str) -> str:
    """Return the provider's address. Raises `ModelUnavailable` when it is unknown or needs variables not set."""
    try:
        row = table.providers.provider(provider)
    except UnknownModel as error:
        raise UnknownModel(f"{error} For one of your own, add --base-url.") from error
    if table.providers.is_unspoken(row):
        raise UnspokenProtocol(
            f"codeloop does not speak the protocol of {row.name} yet ({row.npm}), so that a key of it can't be used: "
            f"nothing was stored.\nUse its models through another provider (such as openrouter); or, if the service "
            f"also speaks another protocol, set provider.{provider}.npm and options.baseURL in codeloop.json first."
        )
    url = resolved_url(row.url, os.environ)
    if url is None:
        needed = f" (it is {row.url})" if row.url else ""
        raise ModelUnavailable(f"The address of {row.name} is not known{needed}. Add --base-url.")
    return url


def _note(table: Table, provider: Provider, stored: AbstractSet[str]) -> str:
    """Return why a key is of no use, where that is so."""
    why = table.providers.why_not(provider, stored)
    return "" if why == NO_KEY else why


def _home(table: Table, provider: str) -> str:
    try:
        return _place(table.providers.provider(provider).home)
    except UnknownModel:
        return "no known address"


def _place(url: str) -> str:
    resolved = resolved_url(url, os.environ)
    return origin(resolved) if resolved else "no known address"


def _from_stdin() -> str:
    return sys.stdin.buffer.readline(KEY_LENGTH.value + 2).decode("utf-8", "replace")


def _tell_what_comes_first(table: Table, provider: str) -> None:
    try:
        row = table.providers.provider(provider)
    except UnknownModel:
        click.echo(f"Now add provider.{provider} to codeloop.json, with options.baseURL and its models.")
        return
    found = environment_key(row.env, os.environ)
    if row.configured_key:
        click.echo(f"codeloop: The configuration's provider.{provider}.options.apiKey comes before it.", err=True)
    elif found is not None:
        click.echo(f"codeloop: {found[0]} is set in the environment and comes before it.", err=True)
