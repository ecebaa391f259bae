"""Signing in at a provider with a plugin: `codeloop auth login PROVIDER`, where a plugin offers it."""

from typing import Any

import click

from codeloop.cli.target.project import run_with_client
from codeloop.client.local import LocalClient
from codeloop.kit.terminal_text import inert
from codeloop.schema.api.providers import FinishSignIn, ProviderAuthMethod, StartSignIn, is_due
from codeloop.schema.operation import PROVIDER_AUTH, PROVIDER_AUTHORIZE, PROVIDER_CALLBACK, NoArguments


def sign_in(provider: str) -> bool:
    """Sign in with the plugin for a provider; False: there is none, or the person wants to type a key.

    Raises CodeloopError: it failed.
    """

    async def command(client: LocalClient) -> bool:
        methods = (await client.call(PROVIDER_AUTH, NoArguments())).get(provider, [])
        if not any(method.type == "oauth" for method in methods):
            return False
        number = _choose(methods)
        if methods[number].type == "api" and not methods[number].prompts:
            return False
        inputs = _inputs(methods[number])
        started = await client.call(PROVIDER_AUTHORIZE, StartSignIn(provider_id=provider, method=number, inputs=inputs))
        if started.url:
            click.echo(inert(f"Open {started.url}\n{started.instructions}"), err=True)
            code = str(click.prompt("Code", err=True)).strip() if started.method == "code" else None
            await client.call(PROVIDER_CALLBACK, FinishSignIn(provider_id=provider, method=number, code=code))
        click.echo(f"Signed in at {provider}.")
        return True

    return run_with_client(command)


def _choose(methods: list[ProviderAuthMethod]) -> int:
    if len(methods) == 1:
        return 0
    for number, method in enumerate(methods, 1):
        click.echo(inert(f"{number}. {method.label}"), err=True)
    return int(click.prompt("How", type=click.IntRange(1, len(methods)), default=1, err=True)) - 1


def _inputs(method: ProviderAuthMethod) -> dict[str, str]:
    """Ask what a method wants to know first."""
    inputs: dict[str, str] = {}
    for prompt in method.prompts or ():
        key, message = str(prompt.get("key", "")), str(prompt.get("message", ""))
        if not is_due(prompt, inputs):
            continue
        options: list[dict[str, Any]] = prompt.get("options") or []
        if options:
            names = [str(option.get("value", "")) for option in options]
            inputs[key] = str(click.prompt(message, type=click.Choice(names), default=names[0], err=True))
        else:
            default = "" if prompt.get("conditional") else None
            inputs[key] = str(click.prompt(message, default=default, show_default=False, err=True)).strip()
    return inputs
