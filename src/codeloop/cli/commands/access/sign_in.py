"""Signs in at a provider that needs more than a key: by a page in the browser, or with further questions.

Used by `codeloop auth login`.
"""

from collections.abc import Mapping
from typing import Any

import click

from codeloop.cli.target.project import run_with_local_client
from codeloop.client.local import LocalClient
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.api.providers import API_KEY_LABEL, FinishSignIn, ProviderAuthMethod, StartSignIn, is_prompt_needed
from codeloop.schema.operation import PROVIDER_AUTH, PROVIDER_AUTHORIZE, PROVIDER_CALLBACK, NoArguments


def sign_in(provider: str, answers: Mapping[str, str]) -> bool:
    """Sign in at a provider; return False if it needs a key and nothing else, which the caller asks for.

    `answers`: answers that are known already, by the key of the question. Raises CodeloopError if the sign-in fails.
    """

    async def choose_and_sign_in(client: LocalClient) -> bool:
        methods = (await client.call(PROVIDER_AUTH, NoArguments())).get(provider, [])
        if not any(method.type == "oauth" or method.prompts for method in methods):
            for method in methods:
                # A label of its own says which kind of key the user is about to type.
                if method.label != API_KEY_LABEL:
                    click.echo(escape_controls(method.label), err=True)
            return False
        number = _choose_method(methods)
        if methods[number].type == "api" and not methods[number].prompts:
            return False
        inputs = _ask_inputs(methods[number], answers)
        attempt = await client.call(PROVIDER_AUTHORIZE, StartSignIn(provider_id=provider, method=number, inputs=inputs))
        if attempt.url:
            click.echo(escape_controls(f"Open {attempt.url}\n{attempt.instructions}"), err=True)
            code = str(click.prompt("Code", err=True)).strip() if attempt.method == "code" else None
            await client.call(PROVIDER_CALLBACK, FinishSignIn(provider_id=provider, method=number, code=code))
        click.echo(escape_controls(f"Signed in at {provider}." if attempt.url else attempt.instructions))
        return True

    return run_with_local_client(choose_and_sign_in)


def _choose_method(methods: list[ProviderAuthMethod]) -> int:
    if len(methods) == 1:
        return 0
    for number, method in enumerate(methods, 1):
        click.echo(escape_controls(f"{number}. {method.label}"), err=True)
    return int(click.prompt("How", type=click.IntRange(1, len(methods)), default=1, err=True)) - 1


def _ask_inputs(method: ProviderAuthMethod, answers: Mapping[str, str]) -> dict[str, str]:
    """Ask the questions of a method whose answers are not known, and return all answers by the question's key."""
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
            inputs[key] = str(click.prompt(message, type=click.Choice(names), default=names[0], err=True))
        else:
            can_be_empty, is_hidden = prompt.get("conditional") or prompt.get("optional"), prompt.get("hidden") is True
            default = "" if can_be_empty else None
            question = f"{message} ({prompt['placeholder']})" if prompt.get("placeholder") else message
            answer = click.prompt(question, default=default, hide_input=is_hidden, show_default=False, err=True)
            inputs[key] = str(answer).strip()
    return inputs
