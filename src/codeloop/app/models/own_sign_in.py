"""Sign-in without a plugin: a key, a cloud's settings, or a code typed on the service's page."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

from codeloop.app.models.deployments import ResourceDeployments
from codeloop.app.settings import ProjectSettings
from codeloop.config.file_entries import choose_entry_file, write_value
from codeloop.model.catalog.vendors import ASKED_SETTINGS, DEPLOYMENT_PROVIDERS
from codeloop.model.credentials.chains import load_chain
from codeloop.model.credentials.device_code import (
    DEVICE_SERVICES,
    DeviceSignIn,
    make_device_sign_in,
    request_code,
    wait_for_tokens,
)
from codeloop.model.credentials.environment import find_environment_key
from codeloop.model.credentials.pkce import PKCE_SERVICES, PkceService, fetch_key, make_page_url, make_verifier
from codeloop.model.credentials.store import is_valid_key
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import Provider, explain_key_unstorable, resolve_base_url, resolve_settings, resolve_url
from codeloop.model.providers import Providers
from codeloop.schema.api.providers import API_KEY_LABEL, FinishSignIn, ProviderAuthMethod, StartedSignIn, StartSignIn
from codeloop.schema.bounds.cloud import DEVICE_CODE_TIME
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.wire import JSON

_KEY, _DEPLOYMENT, _KEYRING = "key", "deployment", "keyring"
_KEYRING_PROMPT: JSON = {
    "type": "select",
    "key": _KEYRING,
    "message": "Where is the key kept?",
    "options": [
        {"value": "file", "label": "In a file, readable by you alone"},
        {"value": "keyring", "label": "In the system's keyring"},
    ],
    "when": {"key": _KEY, "op": "neq", "value": ""},
}
_DEPLOYMENT_PROMPT: JSON = {
    "type": "text",
    "key": _DEPLOYMENT,
    "message": "The name of a deployment",
    "placeholder": "empty: all that the resource lists",
    "optional": True,
}

Finish = Callable[[], Awaitable[None]]
"""Waits for the end of a sign-in, and stores what comes of it. Raises CodeloopError."""


class OwnSignIns:
    """The sign-ins of a project that wait for what is done on a page, by provider."""

    def __init__(
        self, providers: Providers, settings: ProjectSettings, renew: Callable[[], Awaitable[None]] | None
    ) -> None:
        """`renew`: has the project opened again, after its configuration was changed."""
        self._providers = providers
        self._settings = settings
        self._renew = renew
        self._waiting: dict[str, Finish] = {}
        self._listening = AsyncExitStack()

    async def authorize(self, args: StartSignIn) -> StartedSignIn:
        """Start a sign-in, or store what was asked for; then there is no `url`. Raises OperationError."""
        provider = self._providers.get_provider(args.provider_id)
        methods = list_methods(provider, self._settings.environment)
        if not methods:
            raise OperationError("BadRequest", explain_key_unstorable(provider, self._settings.environment))
        if not 0 <= args.method < len(methods):
            raise OperationError("BadRequest", f"{provider.id} has {len(methods)} methods, from 0.")
        if methods[args.method].type == "api":
            message = await self._store(provider, args.inputs or {})
            return StartedSignIn(url="", method="auto", instructions=message)
        sign_in = make_device_sign_in(provider.id, provider.config.options)
        try:
            if sign_in is not None:
                return await self._ask_for_code(provider, sign_in)
            return await self._open_page(provider, PKCE_SERVICES[provider.id])
        except CodeloopError as error:
            raise OperationError("BadRequest", str(error)) from error

    async def callback(self, args: FinishSignIn) -> None:
        """Wait until it is done on the page, and store what comes of it. Raises OperationError: it failed."""
        finish = self._waiting.pop(args.provider_id, None)
        if finish is None:
            raise OperationError("NotFoundError", f"No sign-in at {args.provider_id} was started.")
        try:
            await finish()
        except TimeoutError:
            raise OperationError("BadRequest", "Nobody signed in for too long. Sign in again.") from None
        except CodeloopError as error:
            raise OperationError("BadRequest", str(error)) from error

    async def _ask_for_code(self, provider: Provider, sign_in: DeviceSignIn) -> StartedSignIn:
        code, credentials = await request_code(sign_in), self._providers.credentials

        async def finish() -> None:
            await asyncio.to_thread(credentials.store_sign_in, provider.id, await wait_for_tokens(sign_in, code))

        self._waiting[provider.id] = finish
        return StartedSignIn(url=code.page_url, method="auto", instructions=f"Enter the code {code.user_code} there.")

    async def _open_page(self, provider: Provider, service: PkceService) -> StartedSignIn:
        """Listen for the redirect from the page; the listener ends with the sign-in, or when another one starts."""
        from codeloop.extend.mcp.sign_in.callback import CallbackServer, RedirectTarget, parse_redirect

        options, state, verifier = provider.config.options, make_verifier(), make_verifier()
        port, home = int(options.get("signInPort", service.port)), str(options.get("signInURL") or service.home)
        server = CallbackServer(RedirectTarget(port, "/"))
        await self._listening.aclose()
        try:
            await self._listening.enter_async_context(server.listening())
        except CodeloopError:
            reason = f"Port {port} of this machine is in use, and {service.name} redirects to it"
            raise ModelUnavailable(f"{reason}. End the program that uses it, or enter a key.") from None
        server.state = state
        back = f"{server.url.replace('127.0.0.1', 'localhost')}?state={state}"

        async def finish() -> None:
            try:
                async with asyncio.timeout(DEVICE_CODE_TIME.seconds):
                    code = parse_redirect(await server.answer, state).code
                key = await fetch_key(service, home, code, verifier)
                url = resolve_base_url(provider, self._settings.environment) or ""
                await asyncio.to_thread(self._providers.credentials.store_key, provider.id, key, url)
            finally:
                await self._listening.aclose()

        self._waiting[provider.id] = finish
        return StartedSignIn(url=make_page_url(service, home, back, verifier), method="auto", instructions="")

    async def _store(self, provider: Provider, inputs: Mapping[str, str]) -> str:
        """Put settings into the user's own configuration, and store the key for the address that they give.

        Return a message for the user.
        """
        key = inputs.get(_KEY, "").strip()
        asked_settings = ASKED_SETTINGS.get(provider.id, {})
        settings = {name: value.strip() for name, value in inputs.items() if name in asked_settings}
        if key and not is_valid_key(key):
            raise OperationError("BadRequest", "That is no key: it must be one word of plain characters.")
        names = {option: row.variable for option, row in asked_settings.items()}
        answers = {names[option]: value for option, value in settings.items() if value}
        url = resolve_url(provider.url, resolve_settings(provider, {**self._settings.environment, **answers}))
        if url is None:
            raise OperationError("BadRequest", explain_key_unstorable(provider, self._settings.environment))
        file, is_in_keyring = choose_entry_file(self._settings.paths, None), inputs.get(_KEYRING) == "keyring"
        credentials = self._providers.credentials
        environment = {**self._settings.environment, **answers}
        deployments = (
            ResourceDeployments(provider, credentials, environment, key)
            if provider.id in DEPLOYMENT_PROVIDERS
            else None
        )
        if deployments is not None:
            await deployments.read()
        try:
            for option, value in settings.items():
                if value:
                    path = ("provider", provider.id, "options", option)
                    await asyncio.to_thread(write_value, file, path, value)
            if key:
                in_keyring = is_in_keyring if _KEYRING in inputs else None
                await asyncio.to_thread(credentials.store_key, provider.id, key, url, in_keyring=in_keyring)
            deployment = inputs.get(_DEPLOYMENT, "").strip()
            message = await deployments.write(file, deployment) if deployments is not None else "It is stored."
        except CodeloopError as error:
            raise OperationError("BadRequest", str(error)) from error
        if self._renew is not None:
            await self._renew()
        return message


def list_methods(
    provider: Provider, environment: Mapping[str, str], *, is_stored: bool = False, has_keyring: bool = False
) -> list[ProviderAuthMethod]:
    """Return the ways to sign in at a provider; none where something is missing that nobody can type.

    `is_stored`: a key of the provider is stored. `has_keyring`: the key can be kept in a keyring.
    """
    prompts = _list_prompts(provider, environment, is_stored=is_stored)
    if has_keyring and any(each["key"] == _KEY for each in prompts):
        prompts = [*prompts, _KEYRING_PROMPT]
    if not prompts and explain_key_unstorable(provider, environment):
        return []
    by_key = ProviderAuthMethod(type="api", label=API_KEY_LABEL, prompts=prompts or None)
    if (by_page := PKCE_SERVICES.get(provider.id)) is not None:
        return [ProviderAuthMethod(type="oauth", label=f"Sign in on a page of {by_page.name}"), by_key]
    if (service := DEVICE_SERVICES.get(provider.id)) is None:
        return [by_key]
    if make_device_sign_in(provider.id, provider.config.options) is None:
        return [ProviderAuthMethod(type="api", label=service.missing_client_advice)]
    return [ProviderAuthMethod(type="oauth", label=f"Sign in on a page of {service.name}"), by_key]


def _list_prompts(provider: Provider, environment: Mapping[str, str], *, is_stored: bool) -> list[JSON]:
    """Return the prompts to answer before a provider has an address, and its key where it takes one.

    Where models are deployed first, a deployment is asked for each time.
    """
    rows, chain = ASKED_SETTINGS.get(provider.id, {}), load_chain(provider.id)
    if provider.id in DEPLOYMENT_PROVIDERS and provider.has_configured_url:
        rows = {}
    elif provider.has_configured_url or (
        chain is not None and not chain.accepts_key and not chain.describe_credentials(environment)
    ):
        return []
    settings = resolve_settings(provider, environment)
    missing: list[JSON] = [
        {"type": "text", "key": option, "message": row.question, "placeholder": row.example}
        for option, row in rows.items()
        if not settings.get(row.variable)
    ]
    takes_key = chain is None or chain.accepts_key
    key: JSON = {"type": "text", "key": _KEY, "message": f"Key for {provider.name}", "hidden": True}
    if provider.id in DEPLOYMENT_PROVIDERS:
        is_there = is_stored or provider.configured_key or provider.has_key_helper
        if is_there or find_environment_key(provider.env, environment):
            key = {**key, "placeholder": "empty: the one in use", "optional": True}
        return [*missing, key, _DEPLOYMENT_PROMPT]
    return [*missing, key] if missing and takes_key else missing
