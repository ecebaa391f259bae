"""Signing in without a plugin: a key, what a cloud's address is made of, or a code typed on the service's page."""

import asyncio
from collections.abc import Mapping

from codeloop.app.project import Project
from codeloop.config.entry import entry_file, write_value
from codeloop.model.catalog.vendors import ASKED_SETTINGS
from codeloop.model.credentials.chains import chain_of
from codeloop.model.credentials.device_code import SERVICES, DeviceCode, DeviceSignIn, device_sign_in, start, wait
from codeloop.model.credentials.store import is_key
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import Provider, resolve_url, settings_of, why_no_key
from codeloop.schema.api.providers import API_KEY, FinishSignIn, ProviderAuthMethod, StartedSignIn, StartSignIn
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.wire import JSON

_KEY = "key"


class OwnSignIns:
    """The sign-ins of a project that wait for their code to be typed, by provider."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._waiting: dict[str, tuple[DeviceSignIn, DeviceCode]] = {}

    async def authorize(self, args: StartSignIn) -> StartedSignIn:
        """Start a sign-in, or store what was asked for; then there is no `url`. Raises OperationError."""
        project = self._project
        provider = project.providers.provider(args.provider_id)
        methods = list_methods(provider, project.settings.environment)
        if not methods:
            raise OperationError("BadRequest", why_no_key(provider, project.settings.environment))
        if not 0 <= args.method < len(methods):
            raise OperationError("BadRequest", f"{provider.id} has {len(methods)} methods, from 0.")
        sign_in = device_sign_in(provider.id, provider.config.options)
        if sign_in is None or methods[args.method].type == "api":
            await self._store(provider, args.inputs or {})
            return StartedSignIn(url="", method="auto", instructions="It is stored.")
        try:
            code = await start(sign_in)
        except ModelUnavailable as error:
            raise OperationError("BadRequest", str(error)) from error
        self._waiting[provider.id] = sign_in, code
        return StartedSignIn(url=code.page, method="auto", instructions=f"Enter the code {code.user_code} there.")

    async def callback(self, args: FinishSignIn) -> None:
        """Wait until the code was typed, and store the token. Raises OperationError: it failed."""
        found = self._waiting.pop(args.provider_id, None)
        if found is None:
            raise OperationError("NotFoundError", f"No sign-in at {args.provider_id} was started.")
        credentials = self._project.providers.credentials
        try:
            await asyncio.to_thread(credentials.put_signed_in, args.provider_id, await wait(*found))
        except CodeloopError as error:
            raise OperationError("BadRequest", str(error)) from error

    async def _store(self, provider: Provider, inputs: Mapping[str, str]) -> None:
        """Put settings into the user's own configuration, and store the key for the address that comes of them."""
        project, key = self._project, inputs.get(_KEY, "").strip()
        given = {name: value.strip() for name, value in inputs.items() if name in ASKED_SETTINGS[provider.id]}
        if key and not is_key(key):
            raise OperationError("BadRequest", "That is no key: it must be one word of plain characters.")
        names = {option: row.variable for option, row in ASKED_SETTINGS[provider.id].items()}
        said = {names[option]: value for option, value in given.items() if value}
        url = resolve_url(provider.url, settings_of(provider, {**project.settings.environment, **said}))
        if url is None:
            raise OperationError("BadRequest", why_no_key(provider, project.settings.environment))
        file = entry_file(project.settings.paths, None)
        try:
            for option, value in given.items():
                if value:
                    path = ("provider", provider.id, "options", option)
                    await asyncio.to_thread(write_value, file, path, value)
            if key:
                await asyncio.to_thread(project.providers.credentials.put, provider.id, key, url)
        except CodeloopError as error:
            raise OperationError("BadRequest", str(error)) from error
        if project.renew is not None:
            await project.renew()


def list_methods(provider: Provider, environment: Mapping[str, str]) -> list[ProviderAuthMethod]:
    """Return the ways to get at a provider; none where something is missing that nobody can type."""
    prompts = _list_prompts(provider, environment)
    if not prompts and why_no_key(provider, environment):
        return []
    by_key = ProviderAuthMethod(type="api", label=API_KEY, prompts=prompts or None)
    if (service := SERVICES.get(provider.id)) is None:
        return [by_key]
    if device_sign_in(provider.id, provider.config.options) is None:
        return [ProviderAuthMethod(type="api", label=service.without)]
    return [ProviderAuthMethod(type="oauth", label=f"Sign in on a page of {service.name}"), by_key]


def _list_prompts(provider: Provider, environment: Mapping[str, str]) -> list[JSON]:
    """Return what has to be typed before a provider has an address, and its key where it takes one."""
    rows, chain = ASKED_SETTINGS.get(provider.id, {}), chain_of(provider.id)
    if provider.configured_url or (chain is not None and not chain.takes_key and not chain.find(environment)):
        return []
    said = settings_of(provider, environment)
    missing: list[JSON] = [
        {"type": "text", "key": option, "message": row.question, "placeholder": row.example}
        for option, row in rows.items()
        if not said.get(row.variable)
    ]
    takes_key = chain is None or chain.takes_key
    key: JSON = {"type": "text", "key": _KEY, "message": f"Key for {provider.name}", "hidden": True}
    return [*missing, key] if missing and takes_key else missing
