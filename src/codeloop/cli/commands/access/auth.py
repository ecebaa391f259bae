"""`codeloop auth`: stores, lists and removes API keys, or signs in at a provider.
Keys are never printed in full.
"""

import os
import sys
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import click

from codeloop.app.settings import ProjectSettings
from codeloop.cli.group import CommandGroup
from codeloop.cli.output.columns import align_columns
from codeloop.cli.target.project import load_providers, run_with_local_client
from codeloop.client.local import LocalClient
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.model.base_url import parse_origin
from codeloop.model.catalog.vendors import DEPLOYMENT_PROVIDERS
from codeloop.model.credentials.environment import find_environment_key
from codeloop.model.credentials.store import ApiKey, KeyringKey, StoredKey, is_valid_key, mask_key
from codeloop.model.errors import ModelUnavailable, UnknownModel, UnsupportedProtocol
from codeloop.model.provider import (
    Provider,
    explain_key_unstorable,
    make_key_headers,
    resolve_base_url,
    resolve_settings,
    resolve_url,
)
from codeloop.model.providers import Providers, is_signed_in, make_hints
from codeloop.model.usable_models import NO_KEY_REASON, explain_unusable
from codeloop.schema.api.providers import (
    API_KEY_LABEL,
    PROVIDER_AUTH,
    PROVIDER_AUTHORIZE,
    PROVIDER_CALLBACK,
    FinishSignIn,
    ProviderAuthMethod,
    StartSignIn,
    is_prompt_needed,
)
from codeloop.schema.errors import UsageProblem
from codeloop.schema.limits import KEY_LENGTH
from codeloop.schema.operation import NoArguments

_KEYRING_NAME = "the system's keyring"


@click.group(cls=CommandGroup)
def auth() -> None:
    """Store, list and remove API keys."""


@auth.command()
@click.argument("provider", required=False)
@click.option("--key-stdin", is_flag=True, help="Read the key from stdin (its first line).")
@click.option("--base-url", help="Address the key is for. [default: the provider's own]")
@click.option(
    "--keyring/--no-keyring",
    default=None,
    help="Keep the key in the system's keyring, or in a file. [default: where the old one is; else a file]",
)
@click.option(
    "--deployment", help="The deployment to use, at Azure. [default: all that the resource lists]"
)
def login(
    provider: str | None,
    *,
    key_stdin: bool,
    base_url: str | None,
    keyring: bool | None,
    deployment: str | None,
) -> None:
    """Store an API key for PROVIDER, or sign in there with a plugin that offers it.

    A key is only ever sent to the address it is stored for.
    The keyring needs the Python package `keyring`.
    """
    settings, providers = load_providers()
    is_interactive = sys.stdin.isatty() and not key_stdin
    if provider is None:
        if not is_interactive:
            raise UsageProblem("Name the provider: codeloop auth login PROVIDER --key-stdin")
        provider = str(
            click.prompt("Provider (such as anthropic, openai, openrouter)", err=True)
        ).strip()
    if deployment is not None and provider not in DEPLOYMENT_PROVIDERS:
        raise UsageProblem(
            f"--deployment is for {' and '.join(sorted(DEPLOYMENT_PROVIDERS))}, whose models have to be deployed."
        )
    # A sign-in may take the place of a key: by a page of the provider, by an extension,
    # or with further questions.
    can_sign_in = not key_stdin and base_url is None and (is_interactive or settings.extensions)
    if can_sign_in and (not keyring or provider in DEPLOYMENT_PROVIDERS):
        answers: dict[str, str] = {}
        if deployment is not None:
            answers["deployment"] = deployment
        if keyring is not None:
            answers["keyring"] = "keyring" if keyring else "file"
        if _sign_in(provider, answers):
            return
    url = base_url or find_provider_url(providers, provider)
    key = _read_key(parse_origin(url), is_interactive=is_interactive)
    why_untried = (
        _try_key(providers, provider, url, key) if is_interactive else "the key came from stdin"
    )
    stored_key = providers.credentials.store_key(provider, key, url, in_keyring=keyring)
    location = _locate_key(providers, stored_key)
    click.echo(
        f"Stored the key {mask_key(key)} for {provider} at {stored_key.origin} in {location}."
    )
    if why_untried:
        untried_note = f"It was stored, not tried ({why_untried})"
        click.echo(f"{untried_note}: `codeloop doctor --online` tries the key of the model in use.")
    else:
        click.echo(f"{provider} accepts it.")
    _show_precedence(providers, provider)
    # The sign-in stores the deployment; an empty key leaves the one that was stored above.
    if deployment:
        _sign_in(provider, {"deployment": deployment, "key": ""})


@auth.command("list")
def list_keys() -> None:
    """List keys, masked, each with its address and its source."""
    settings, providers = load_providers()
    rows = _list_key_rows(settings, providers)
    if not rows:
        click.echo("No key is stored or set. Store one: `codeloop auth login PROVIDER`.")
        return
    click.echo(align_columns([("provider", "key", "for", "from", ""), *rows]))
    if providers.credentials.is_open_to_others():
        path = providers.credentials.path
        click.echo(f"codeloop: Other users can read {path}. Run: chmod 600 {path}", err=True)


def _list_key_rows(settings: ProjectSettings, providers: Providers) -> list[tuple[str, ...]]:
    """Return a row for each key or sign-in: those of the configuration and the environment first,
    then the stored.
    """
    rows: list[tuple[str, ...]] = []
    stored_keys = providers.credentials.read_entries()
    for provider in providers.list_all():
        address = _describe_address(provider, provider.url)
        note = _explain_unusable(providers, provider, stored_keys.keys())
        if provider.configured_key:
            setting = settings.loaded.describe_origin(
                ("provider", provider.id, "options", "apiKey")
            )
            source = setting.place if setting else "configuration"
            rows.append((provider.id, mask_key(provider.configured_key), address, source, note))
        if (variable := find_environment_key(provider.env, os.environ)) is not None:
            name, key = variable
            rows.append((provider.id, mask_key(key), address, f"environment {name}", note))
        if is_signed_in(providers, provider):
            rows.append((provider.id, "signed in", address, str(providers.credentials.path), note))
    providers_by_id = {provider.id: provider for provider in providers.list_all()}
    for provider_id, entry in sorted(stored_keys.items()):
        address = entry.origin or _find_home_address(providers, provider_id)
        note = "unknown provider"
        if provider_id in providers_by_id:
            note = _explain_unusable(providers, providers_by_id[provider_id], stored_keys.keys())
        key_text = mask_key(entry.key) if isinstance(entry, ApiKey) else "in the keyring"
        rows.append((provider_id, key_text, address, _locate_key(providers, entry), note))
    return rows


@auth.command()
@click.argument("provider")
def logout(provider: str) -> None:
    """Remove the stored key of PROVIDER."""
    credentials = load_providers()[1].credentials
    # Read first, because afterwards nothing shows where the key was.
    old_entry = credentials.read_entries().get(provider)
    if not credentials.remove_entry(provider):
        names = ", ".join(sorted(credentials.read_entries())) or "none"
        raise UnknownModel(
            f"No key for `{provider}` is stored in {credentials.path} (stored: {names})."
        )
    location = _KEYRING_NAME if isinstance(old_entry, KeyringKey) else credentials.path
    click.echo(f"Removed the key for {provider} from {location}.")


def _sign_in(provider: str, answers: Mapping[str, str]) -> bool:
    """Sign in at a provider; return False if it needs a key and nothing else,
    which the caller asks for.

    `answers`: answers that are known already, by the key of the question.
    Raises CodeloopError if the sign-in fails.
    """

    async def choose_and_sign_in(client: LocalClient) -> bool:
        methods = (await client.call(PROVIDER_AUTH, NoArguments())).get(provider, [])
        if not any(method.type == "oauth" or method.prompts for method in methods):
            for method in methods:
                # A label of its own says which kind of key the user is about to type.
                if method.label != API_KEY_LABEL:
                    click.echo(escape_controls(method.label), err=True)
            return False
        index = _choose_method(methods)
        if methods[index].type == "api" and not methods[index].prompts:
            return False
        inputs = _ask_inputs(methods[index], answers)
        attempt = await client.call(
            PROVIDER_AUTHORIZE, StartSignIn(provider_id=provider, method=index, inputs=inputs)
        )
        if attempt.url:
            click.echo(escape_controls(f"Open {attempt.url}\n{attempt.instructions}"), err=True)
            code = str(click.prompt("Code", err=True)).strip() if attempt.method == "code" else None
            await client.call(
                PROVIDER_CALLBACK, FinishSignIn(provider_id=provider, method=index, code=code)
            )
        click.echo(
            escape_controls(f"Signed in at {provider}." if attempt.url else attempt.instructions)
        )
        return True

    return run_with_local_client(choose_and_sign_in)


def _choose_method(methods: list[ProviderAuthMethod]) -> int:
    """Have the user choose one of several methods; return its index."""
    if len(methods) == 1:
        return 0
    for number, method in enumerate(methods, 1):
        click.echo(escape_controls(f"{number}. {method.label}"), err=True)
    return int(click.prompt("How", type=click.IntRange(1, len(methods)), default=1, err=True)) - 1


def _ask_inputs(method: ProviderAuthMethod, answers: Mapping[str, str]) -> dict[str, str]:
    """Ask the questions of a method whose answers are not known,
    and return all answers by the question's key.
    """
    inputs: dict[str, str] = {}
    for prompt in method.prompts or ():
        # Extensions write the questions, so no field is sure to be there.
        key, message = str(prompt.get("key", "")), str(prompt.get("message", ""))
        if not is_prompt_needed(prompt, inputs):
            continue
        if key in answers:
            inputs[key] = answers[key]
            continue
        options: list[dict[str, Any]] = prompt.get("options") or []
        if options:
            names = [str(option.get("value", "")) for option in options]
            inputs[key] = str(
                click.prompt(message, type=click.Choice(names), default=names[0], err=True)
            )
        else:
            can_be_empty = prompt.get("conditional") or prompt.get("optional")
            answer = click.prompt(
                f"{message} ({prompt['placeholder']})" if prompt.get("placeholder") else message,
                # Without a default, click asks until the answer is not empty.
                default="" if can_be_empty else None,
                hide_input=prompt.get("hidden") is True,
                show_default=False,
                err=True,
            )
            inputs[key] = str(answer).strip()
    return inputs


def _try_key(providers: Providers, provider: str, url: str, key: str) -> str:
    """Try a key at its service; return why it could not be tried, "" if the service accepts it.

    Raises ModelUnavailable if the service refuses it.
    """
    # Only this command needs the HTTP client.
    import asyncio

    from codeloop.model.credentials.key_check import check_key

    try:
        npm = providers.get_provider(provider).npm
    except UnknownModel:
        npm = ""
    key_check = asyncio.run(check_key(provider, url, make_key_headers(npm, provider, key)))
    if key_check.state == "refused":
        raise ModelUnavailable(
            f"{provider} refuses this key at {parse_origin(url)} ({key_check.reason}). Nothing was stored.\n"
            "Check that it was copied whole, that it is of the right account, and that it is for this address."
        )
    return key_check.reason


def find_provider_url(providers: Providers, provider: str) -> str:
    """Return the address of a provider's API.

    Raises ModelUnavailable if the provider is unknown or not supported, if a stored key is of no
    use to it, or if its address needs environment variables that are not set.
    """
    try:
        row = providers.get_provider(provider)
    except UnknownModel as error:
        raise UnknownModel(f"{error} For a provider of your own, add --base-url.") from error
    if providers.is_unsupported(row):
        raise UnsupportedProtocol(
            f"codeloop does not support the protocol of {row.name} yet ({row.npm}), so its key can't be used: nothing "
            f"was stored.\nUse its models through another provider (such as openrouter); or, if the service also "
            f"supports another protocol, set provider.{provider}.npm and options.baseURL in codeloop.json first."
        )
    url, problem = resolve_base_url(row, os.environ), explain_key_unstorable(row, os.environ)
    if url is None or problem:
        raise ModelUnavailable(
            f"Nothing was stored. {problem} For another address, add --base-url."
        )
    return url


def _explain_unusable(
    providers: Providers, provider: Provider, ids_with_key: AbstractSet[str]
) -> str:
    """Return why a provider's key can't be used, "" if it can.
    `ids_with_key`: the providers with a stored key.
    """
    reason = explain_unusable(providers, provider, ids_with_key)
    # A row of the list is about a key that there is.
    return "" if reason == NO_KEY_REASON else reason


def _locate_key(providers: Providers, entry: StoredKey) -> str:
    return _KEYRING_NAME if isinstance(entry, KeyringKey) else str(providers.credentials.path)


def _find_home_address(providers: Providers, provider: str) -> str:
    try:
        row = providers.get_provider(provider)
    except UnknownModel:
        return "unknown address"
    return _describe_address(row, row.default_url)


def _describe_address(provider: Provider, url: str) -> str:
    address = resolve_url(url, resolve_settings(provider, os.environ))
    return parse_origin(address) if address else "unknown address"


def _read_key(address: str, *, is_interactive: bool) -> str:
    """Ask for the key for an address, or read it from stdin.
    Raises UsageProblem if it can't be a key.
    """
    if is_interactive:
        key = str(click.prompt(f"Key for {address}", hide_input=True, err=True)).strip()
    else:
        # Two more bytes than a key may have: the line end,
        # and one that makes a longer line too long.
        key = sys.stdin.buffer.readline(KEY_LENGTH.value + 2).decode("utf-8", "replace").strip()
    if not key:
        raise UsageProblem("That is not a valid key: it is empty. Nothing was stored.")
    if not is_valid_key(key):
        raise UsageProblem(
            "That is not a valid key: a key is one word of ASCII characters. Nothing was stored."
        )
    return key


def _show_precedence(providers: Providers, provider: str) -> None:
    """Say which other key takes precedence over the stored one;
    for an unknown provider, what to configure next.
    """
    try:
        row = providers.get_provider(provider)
    except UnknownModel:
        click.echo(
            f"Now add provider.{provider} to codeloop.json, with options.baseURL and models."
        )
        return
    if other_key := make_hints(providers, row).describe_preferred_key():
        click.echo(
            f"codeloop: The key of {escape_controls(other_key)} takes precedence over it.", err=True
        )
