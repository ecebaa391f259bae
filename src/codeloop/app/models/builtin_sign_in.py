"""Signs in at providers without a plugin: with a key, the settings of a cloud,
or on a page of the service.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

from codeloop.app.models.deployments import ResourceDeployments
from codeloop.app.settings import ProjectSettings
from codeloop.config.file_entries import choose_entry_file, write_value
from codeloop.model.catalog.vendors import ASKED_SETTINGS, DEPLOYMENT_PROVIDERS
from codeloop.model.credentials.device_code import (
    DEVICE_SERVICES,
    DeviceSignIn,
    make_device_sign_in,
    request_code,
    wait_for_tokens,
)
from codeloop.model.credentials.environment import find_environment_key, load_chain
from codeloop.model.credentials.pkce import (
    PKCE_SERVICES,
    PkceService,
    fetch_key,
    make_page_url,
    make_verifier,
)
from codeloop.model.credentials.store import is_valid_key
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import (
    Provider,
    explain_key_unstorable,
    resolve_base_url,
    resolve_settings,
    resolve_url,
)
from codeloop.model.providers import Providers
from codeloop.schema.api.providers import (
    API_KEY_LABEL,
    FinishSignIn,
    ProviderAuthMethod,
    StartedSignIn,
    StartSignIn,
)
from codeloop.schema.bounds.cloud import DEVICE_CODE_TIME
from codeloop.schema.errors import CodeloopError, OperationError
from codeloop.schema.wire import JSON

# The keys of a client's answers (`inputs`), and of the prompts for them.
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

FinishWaiting = Callable[[], Awaitable[None]]
"""Waits until the user has signed in, and stores the credential.
Raises CodeloopError, TimeoutError.
"""


class BuiltinSignIns:
    """The sign-ins of a project. Those that wait for the user on a page are kept by provider."""

    def __init__(
        self,
        providers: Providers,
        settings: ProjectSettings,
        reload: Callable[[], Awaitable[None]] | None,
    ) -> None:
        """`reload`: has the project opened again after its configuration was changed."""
        self._providers = providers
        self._settings = settings
        self._reload = reload
        self._waiting: dict[str, FinishWaiting] = {}
        self._listener = AsyncExitStack()

    async def start_sign_in(self, args: StartSignIn) -> StartedSignIn:
        """Start a sign-in on a page; or store the typed settings, and return no `url`.
        Raises OperationError.
        """
        provider = self._providers.get_provider(args.provider_id)
        methods = list_methods(provider, self._settings.environment)
        if not methods:
            raise OperationError(
                "BadRequest", explain_key_unstorable(provider, self._settings.environment)
            )
        if not 0 <= args.method < len(methods):
            raise OperationError("BadRequest", f"{provider.id} has {len(methods)} methods, from 0.")
        if methods[args.method].type == "api":
            message = await self._store_inputs(provider, args.inputs or {})
            return StartedSignIn(url="", method="auto", instructions=message)
        sign_in = make_device_sign_in(provider.id, provider.config.options)
        try:
            if sign_in is not None:
                return await self._ask_for_code(provider, sign_in)
            return await self._open_page(provider, PKCE_SERVICES[provider.id])
        except CodeloopError as error:
            raise OperationError("BadRequest", str(error)) from error

    async def finish_sign_in(self, args: FinishSignIn) -> None:
        """Wait until the user has signed in, and store the credential.
        Raises OperationError if that fails.
        """
        finish = self._waiting.pop(args.provider_id, None)
        if finish is None:
            raise OperationError("NotFoundError", f"No sign-in at {args.provider_id} was started.")
        try:
            await finish()
        except TimeoutError:
            raise OperationError(
                "BadRequest", "Nobody signed in for too long. Sign in again."
            ) from None
        except CodeloopError as error:
            raise OperationError("BadRequest", str(error)) from error

    async def _ask_for_code(self, provider: Provider, sign_in: DeviceSignIn) -> StartedSignIn:
        code, credentials = await request_code(sign_in), self._providers.credentials

        async def finish() -> None:
            await asyncio.to_thread(
                credentials.store_sign_in, provider.id, await wait_for_tokens(sign_in, code)
            )

        self._waiting[provider.id] = finish
        return StartedSignIn(
            url=code.page_url, method="auto", instructions=f"Enter the code {code.user_code} there."
        )

    async def _open_page(self, provider: Provider, service: PkceService) -> StartedSignIn:
        """Listen for the redirect from the page. The listener ends with the sign-in,
        or when another one starts.
        """
        from codeloop.extend.mcp.sign_in.callback import (
            CallbackServer,
            RedirectTarget,
            parse_redirect,
        )

        options = provider.config.options
        # Two random words: the state shows that a redirect belongs to this sign-in,
        # the verifier redeems its code.
        state, verifier = make_verifier(), make_verifier()
        port, home = (
            int(options.get("signInPort", service.port)),
            str(options.get("signInURL") or service.base_url),
        )
        server = CallbackServer(RedirectTarget(port, "/"))
        await self._listener.aclose()
        try:
            await self._listener.enter_async_context(server.listen())
        except CodeloopError:
            reason = f"Port {port} of this machine is in use, and {service.name} redirects to it"
            raise ModelUnavailable(
                f"{reason}. End the program that uses it, or enter a key."
            ) from None
        server.state = state
        redirect_url = f"{server.url.replace('127.0.0.1', 'localhost')}?state={state}"

        async def finish() -> None:
            try:
                async with asyncio.timeout(DEVICE_CODE_TIME.seconds):
                    code = parse_redirect(await server.answer, state).code
                key = await fetch_key(service, home, code, verifier)
                url = resolve_base_url(provider, self._settings.environment) or ""
                await asyncio.to_thread(
                    self._providers.credentials.store_key, provider.id, key, url
                )
            finally:
                await self._listener.aclose()

        self._waiting[provider.id] = finish
        return StartedSignIn(
            url=make_page_url(service, home, redirect_url, verifier), method="auto", instructions=""
        )

    async def _store_inputs(self, provider: Provider, inputs: Mapping[str, str]) -> str:
        """Write settings to the user's configuration, and store the key for the address
        that follows from them.

        Return a message for the user. Raises OperationError.
        """
        asked_settings = ASKED_SETTINGS.get(provider.id, {})
        settings = {
            option: value.strip()
            for option, value in inputs.items()
            if option in asked_settings and value.strip()
        }
        key = inputs.get(_KEY, "").strip()
        if key and not is_valid_key(key):
            raise OperationError(
                "BadRequest",
                "That is not a valid key. A key is one word of printable ASCII characters.",
            )
        answers = {asked_settings[option].variable: value for option, value in settings.items()}
        environment = {**self._settings.environment, **answers}
        url = resolve_url(provider.url, resolve_settings(provider, environment))
        if url is None:
            raise OperationError(
                "BadRequest", explain_key_unstorable(provider, self._settings.environment)
            )
        credentials = self._providers.credentials
        deployments: ResourceDeployments | None = None
        if provider.id in DEPLOYMENT_PROVIDERS:
            deployments = ResourceDeployments(provider, credentials, environment, key)
            # Before anything is stored: a resource that refuses the key must change nothing.
            await deployments.read()
        file = choose_entry_file(self._settings.paths, None)
        try:
            for option, value in settings.items():
                path = ("provider", provider.id, "options", option)
                await asyncio.to_thread(write_value, file, path, value)
            if key:
                # A client that was not asked sends no answer: the key then stays
                # where the old one is.
                in_keyring = inputs[_KEYRING] == "keyring" if _KEYRING in inputs else None
                await asyncio.to_thread(
                    credentials.store_key, provider.id, key, url, in_keyring=in_keyring
                )
            message = "It is stored."
            if deployments is not None:
                message = await deployments.write(file, inputs.get(_DEPLOYMENT, "").strip())
        except CodeloopError as error:
            raise OperationError("BadRequest", str(error)) from error
        if self._reload is not None:
            await self._reload()
        return message


def list_methods(
    provider: Provider,
    environment: Mapping[str, str],
    *,
    is_stored: bool = False,
    has_keyring: bool = False,
) -> list[ProviderAuthMethod]:
    """Return the ways to sign in at a provider; none if something is missing that can't be typed.

    `is_stored`: a key of the provider is stored. `has_keyring`: the key can be kept in a keyring.
    """
    prompts = _list_prompts(provider, environment, is_stored=is_stored)
    if has_keyring and any(each["key"] == _KEY for each in prompts):
        prompts = [*prompts, _KEYRING_PROMPT]
    if not prompts and explain_key_unstorable(provider, environment):
        return []
    key_method = ProviderAuthMethod(type="api", label=API_KEY_LABEL, prompts=prompts or None)
    if (page_service := PKCE_SERVICES.get(provider.id)) is not None:
        return [
            ProviderAuthMethod(type="oauth", label=f"Sign in on a page of {page_service.name}"),
            key_method,
        ]
    if (service := DEVICE_SERVICES.get(provider.id)) is None:
        return [key_method]
    if make_device_sign_in(provider.id, provider.config.options) is None:
        return [ProviderAuthMethod(type="api", label=service.missing_client_advice)]
    return [
        ProviderAuthMethod(type="oauth", label=f"Sign in on a page of {service.name}"),
        key_method,
    ]


def _list_prompts(
    provider: Provider, environment: Mapping[str, str], *, is_stored: bool
) -> list[JSON]:
    """Return the prompts for the settings that a provider's address needs,
    and for its key if it takes one.

    Providers with deployments have a prompt for one each time, since users add deployments later.
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
        has_key = is_stored or provider.configured_key or provider.has_key_helper
        if has_key or find_environment_key(provider.env, environment):
            key = {**key, "placeholder": "empty: the one in use", "optional": True}
        return [*missing, key, _DEPLOYMENT_PROMPT]
    return [*missing, key] if missing and takes_key else missing
