"""Signs in at providers with plugins, and opens models whose requests a plugin sends or signs."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from codeloop.app.models.open_models import ModelSource, OpenModels
from codeloop.app.models.provider_list import ProviderList
from codeloop.extend.hooks.hooks import ExtensionRaised, HookFailed
from codeloop.extend.host.host import ExtensionHost
from codeloop.extend.host.plugin_fetch import PluginFetch
from codeloop.extend.host.protocol import AuthStep, LoadedSignIn, LoadSpec
from codeloop.model.chat import ChatModel, Finished, ModelEvent, ModelInfo, ModelRequest
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import resolve_url
from codeloop.model.providers import Providers
from codeloop.model.wire.endpoint import Endpoint
from codeloop.schema.api.providers import ProviderAuthMethod, StartedSignIn
from codeloop.schema.bounds.extension import HOST_LOAD, HOST_SIGN_IN
from codeloop.schema.errors import APIError, APIErrorData, OperationError
from codeloop.schema.limits import MODEL_FIRST_BYTE
from codeloop.schema.wire import JSON, replace


class SignInOffer(Struct, frozen=True):
    """The `auth` of a plugin: the methods to sign in at a provider.
    `loader`: it sets the options of requests.
    """

    provider: str
    methods: tuple[ProviderAuthMethod, ...] = ()
    loader: bool = False


class SignInPlugin(Struct, frozen=True):
    """A plugin that signs in at a provider, and the host that it runs in."""

    offer: SignInOffer
    host: ExtensionHost
    extension: LoadSpec

    async def run_step(self, step: AuthStep, seconds: float) -> Any:
        """Have the plugin run a step of a sign-in, within `seconds`.
        Raises OperationError if it fails or refuses.

        The `id` of `step` does not matter: the host gives it one.
        """
        try:
            return await self.host.ask(
                self.extension, lambda number: msgspec.structs.replace(step, id=number), seconds
            )
        except (HookFailed, ExtensionRaised) as error:
            raise OperationError("BadRequest", f"{self.extension.name}: {error}") from error


class _NumberedMethod(NamedTuple):
    """A way to sign in, with its plugin, and its number among the methods of that plugin."""

    plugin: SignInPlugin
    number: int
    method: ProviderAuthMethod


_PLUGIN_KEY = "plugin"
"""The key, in a stored sign-in, of the plugin that made it;
stored if several plugins sign in at the provider.
"""


class PluginSignIns:
    """The sign-in plugins of a project, by provider.
    Several plugins may sign in at the same provider.
    """

    def __init__(self, providers: Providers, source: ModelSource) -> None:
        """Models of `source` are opened with a plugin if the user signed in with one."""
        self._providers = providers
        self._source = source
        self._provider_list = ProviderList(providers, source)
        self._plugins: dict[str, list[SignInPlugin]] = {}

    def set_plugins(self, plugins: Iterable[SignInPlugin]) -> None:
        """Replace the plugins."""
        self._plugins = {}
        for plugin in plugins:
            self._plugins.setdefault(plugin.offer.provider, []).append(plugin)
        providers_with_loader = frozenset(
            name
            for name, sign_in_plugins in self._plugins.items()
            if any(each.offer.loader for each in sign_in_plugins)
        )
        self._providers.list_plugin_providers = lambda: providers_with_loader
        if isinstance(self._source, OpenModels):
            self._source.use_sign_ins(self.open_model)

    def list_methods(self) -> dict[str, list[ProviderAuthMethod]]:
        """Return the methods by provider. Methods with the same label get the name
        of their plugin added.
        """
        methods_by_provider: dict[str, list[ProviderAuthMethod]] = {}
        for provider in self._plugins:
            rows = self._list_numbered_methods(provider)
            label_counts = Counter(row.method.label for row in rows)
            methods_by_provider[provider] = [
                replace(row.method, label=f"{row.method.label} ({row.plugin.extension.name})")
                if label_counts[row.method.label] > 1
                else row.method
                for row in rows
            ]
        return methods_by_provider

    def _list_numbered_methods(self, provider: str) -> list[_NumberedMethod]:
        """Return the methods for a provider, of all its plugins."""
        plugins = self._plugins.get(provider, [])
        return [
            _NumberedMethod(each, number, method)
            for each in plugins
            for number, method in enumerate(each.offer.methods)
        ]

    async def start_sign_in(
        self, provider: str, method: int, inputs: dict[str, str]
    ) -> StartedSignIn:
        """Start a sign-in; an answer without `url` means that a key was stored at once.
        Raises OperationError.
        """
        plugin, number, provider_auth_method = self._find_method(provider, method)
        step = AuthStep(0, plugin.extension.name, "authorize", number, inputs)
        answer = await plugin.run_step(step, HOST_LOAD.seconds)
        if provider_auth_method.type == "api":
            await self._store_result(plugin, answer)
            return StartedSignIn(url="", method="auto", instructions="The key is stored.")
        return _convert(plugin, answer, StartedSignIn)

    async def finish_sign_in(self, provider: str, method: int, code: str) -> None:
        """Finish a sign-in with its code, and store the credential.
        Raises OperationError if it fails.
        """
        plugin, number, _ = self._find_method(provider, method)
        step = AuthStep(0, plugin.extension.name, "callback", number, code=code)
        await self._store_result(plugin, await plugin.run_step(step, HOST_SIGN_IN.seconds))

    def open_model(self, ref: str) -> ChatModel | None:
        """Return a model that a plugin with a loader signs in for;
        None if the user did not sign in with one.
        """
        provider = ref.partition("/")[0]
        plugins = [each for each in self._plugins.get(provider, []) if each.offer.loader]
        sign_in = self._providers.credentials.find_sign_in(provider) if plugins else None
        if sign_in is None:
            return None
        # Without a name only one plugin signed in at the provider;
        # if there are more now, the last one counts.
        signers = [each for each in plugins if each.extension.name == sign_in.get(_PLUGIN_KEY)]
        plugin = (signers or plugins)[-1]
        return SignedInModel(
            self._providers, self._provider_list, plugin, self._providers.find_model(ref)
        )

    async def _store_result(self, plugin: SignInPlugin, answer: Any) -> None:
        result: JSON = _convert(plugin, answer, JSON)
        provider = str(result.get("provider") or plugin.offer.provider)
        if result.get("type") != "success":
            raise OperationError("BadRequest", f"Signing in at {provider} failed.")
        if isinstance(key := result.get("key"), str):
            url = resolve_url(self._providers.get_provider(provider).url, {}) or ""
            self._providers.credentials.store_key(provider, key, url)
            return
        sign_in = {
            name: value for name, value in result.items() if name not in {"type", "provider"}
        }
        if not sign_in:
            raise OperationError(
                "BadRequest",
                f"{plugin.extension.name} gave no key for {provider}. Enter one yourself.",
            )
        if len(self._plugins[plugin.offer.provider]) > 1:
            sign_in[_PLUGIN_KEY] = plugin.extension.name
        self._providers.credentials.store_sign_in(provider, sign_in)

    def _find_method(self, provider: str, method: int) -> _NumberedMethod:
        if provider not in self._plugins:
            raise OperationError("NotFoundError", f"No plugin signs in at {provider}.")
        methods = self._list_numbered_methods(provider)
        if not 0 <= method < len(methods):
            raise OperationError("BadRequest", f"{provider} has {len(methods)} methods, from 0.")
        return methods[method]


class SignedInModel:
    """A model whose requests a plugin prepares, and sends if it has a `fetch`.

    The plugin's loader runs at the first request, since it needs a running host.
    """

    def __init__(
        self,
        providers: Providers,
        provider_list: ProviderList,
        plugin: SignInPlugin,
        info: ModelInfo,
    ) -> None:
        self._providers = providers
        self._provider_list = provider_list
        self._plugin = plugin
        self._info = info
        self._model: ChatModel | None = None

    @property
    def info(self) -> ModelInfo:
        """The data of the model: names, limits, prices."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the model's events until Finished."""
        try:
            self._model = self._model or await self._open_model()
        except (OperationError, ModelUnavailable) as error:
            api_error = APIError(data=APIErrorData(message=str(error), is_retryable=False))
            yield Finished("error", error=api_error)
            return
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Finished) and event.error is not None:
                    # A host that was started again has forgotten what the loader set up.
                    self._model = None
                yield event

    async def aclose(self) -> None:
        """Do nothing: the host owns the connection."""

    def _read_credential(self) -> JSON:
        sign_in = self._providers.credentials.find_sign_in(self._plugin.offer.provider) or {}
        return {name: value for name, value in sign_in.items() if name != _PLUGIN_KEY}

    async def _open_model(self) -> ChatModel:
        plugin, provider_id = self._plugin, self._plugin.offer.provider
        provider: JSON = msgspec.to_builtins(self._provider_list.describe_provider(provider_id))
        step = AuthStep(
            0,
            plugin.extension.name,
            "loader",
            credential=self._read_credential(),
            provider=provider,
        )
        signed_in = _convert(plugin, await plugin.run_step(step, HOST_LOAD.seconds), LoadedSignIn)
        options = signed_in.options
        base_url = options.get("baseURL")
        url = (
            base_url
            if isinstance(base_url, str)
            else resolve_url(self._providers.get_provider(provider_id).url, {})
        )
        if not url:
            raise ModelUnavailable(
                f"The address of {provider_id} is not known, and {plugin.extension.name} names none."
            )
        url = url.rstrip("/")
        key, headers = options.get("apiKey"), options.get("headers")
        fetch = PluginFetch(
            plugin.host, plugin.extension, url, self._read_credential, MODEL_FIRST_BYTE.seconds
        )
        endpoint = Endpoint(
            base_url=url,
            key=key if isinstance(key, str) else None,
            headers=_convert(plugin, headers or {}, dict[str, str]),
            client=fetch if signed_in.fetch else None,
        )
        return self._providers.open_model(self._info.ref, endpoint)


def _convert(plugin: SignInPlugin, value: Any, expected_type: type[Any]) -> Any:
    try:
        return msgspec.convert(value, expected_type)
    except msgspec.ValidationError as error:
        raise OperationError(
            "BadRequest", f"{plugin.extension.name} gave an invalid answer: {error}."
        ) from error
