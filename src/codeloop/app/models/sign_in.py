"""Signing in with a plugin, and the models of a provider whose requests a plugin sends or signs."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct

from codeloop.app.models.open_models import OpenModels, Source
from codeloop.app.models.provider_list import ProviderList
from codeloop.extend.hooks.hooks import HookFailed
from codeloop.extend.host.host import ExtensionHost, ExtensionRaised
from codeloop.extend.host.plugin_fetch import PluginFetch
from codeloop.extend.host.protocol import AuthStep, LoadedExtension, LoadedSignIn
from codeloop.model.chat import ChatModel, Finished, ModelEvent, ModelInfo, ModelRequest
from codeloop.model.errors import ModelUnavailable
from codeloop.model.provider import resolved_url
from codeloop.model.providers import Providers
from codeloop.model.wire.endpoint import Endpoint
from codeloop.schema.api.providers import ProviderAuthMethod, StartedSignIn
from codeloop.schema.bounds.extension import HOST_LOAD, HOST_SIGN_IN
from codeloop.schema.errors import APIError, APIErrorData, OperationError
from codeloop.schema.limits import MODEL_FIRST_BYTE
from codeloop.schema.wire import JSON


class SignInOffer(Struct, frozen=True):
    """How one signs in with a plugin, as it says. `loader`: it sets what requests need."""

    provider: str
    methods: tuple[ProviderAuthMethod, ...] = ()
    loader: bool = False


class SignInPlugin(Struct, frozen=True):
    """A plugin that signs in at a provider, and the host that it runs in."""

    offer: SignInOffer
    host: ExtensionHost
    extension: LoadedExtension

    async def step(self, step: AuthStep, seconds: float) -> Any:
        """Have it do a step. Raises OperationError: it could not, or would not."""
        try:
            return await self.host.ask(self.extension, lambda number: msgspec.structs.replace(step, id=number), seconds)
        except (HookFailed, ExtensionRaised) as error:
            raise OperationError("BadRequest", f"{self.extension.name}: {error}") from error


class PluginSignIns:
    """The plugins of a project that sign in; the last one that is named for a provider counts."""

    def __init__(self, providers: Providers, source: Source) -> None:
        """Open models of `source` through plugins, where somebody signed in with them."""
        self._providers = providers
        self._source = source
        self._list = ProviderList(providers, source)
        self._plugins: dict[str, SignInPlugin] = {}

    def take(self, plugins: Iterable[SignInPlugin]) -> None:
        """Use these plugins from now on."""
        self._plugins = {plugin.offer.provider: plugin for plugin in plugins}
        loading = frozenset(name for name, plugin in self._plugins.items() if plugin.offer.loader)
        self._providers.signs_in = lambda: loading
        if isinstance(self._source, OpenModels):
            self._source.sign_in(self.open)

    def methods(self) -> dict[str, list[ProviderAuthMethod]]:
        """Return how one signs in, by provider."""
        return {name: list(plugin.offer.methods) for name, plugin in self._plugins.items()}

    async def authorize(self, provider: str, method: int, inputs: dict[str, str]) -> StartedSignIn:
        """Start a sign-in; without a `url`, the method stored a key at once. Raises OperationError."""
        plugin = self._plugin(provider, method)
        step = AuthStep(0, plugin.extension.name, "authorize", method, inputs)
        answer = await plugin.step(step, HOST_LOAD.seconds)
        if plugin.offer.methods[method].type == "api":
            await self._store(plugin, answer)
            return StartedSignIn(url="", method="auto", instructions="The key is stored.")
        return _converted(plugin, answer, StartedSignIn)

    async def callback(self, provider: str, method: int, code: str) -> None:
        """End a sign-in that was started, and store what it gave. Raises OperationError: it failed."""
        plugin = self._plugin(provider, method)
        step = AuthStep(0, plugin.extension.name, "callback", method, code=code)
        await self._store(plugin, await plugin.step(step, HOST_SIGN_IN.seconds))

    def open(self, ref: str) -> ChatModel | None:
        """Return a model whose provider somebody signed in at with a plugin that sets what requests need."""
        plugin = self._plugins.get(ref.partition("/")[0])
        if plugin is None or not plugin.offer.loader:
            return None
        if self._providers.credentials.signed_in(plugin.offer.provider) is None:
            return None
        return SignedInModel(self._providers, self._list, plugin, self._providers.info(ref))

    async def _store(self, plugin: SignInPlugin, answer: Any) -> None:
        gained: JSON = _converted(plugin, answer, JSON)
        provider = str(gained.get("provider") or plugin.offer.provider)
        if gained.get("type") != "success":
            raise OperationError("BadRequest", f"Signing in at {provider} failed.")
        if isinstance(key := gained.get("key"), str):
            url = resolved_url(self._providers.provider(provider).url, {}) or ""
            self._providers.credentials.put(provider, key, url)
            return
        kept = {name: value for name, value in gained.items() if name not in {"type", "provider"}}
        self._providers.credentials.put_signed_in(provider, kept)

    def _plugin(self, provider: str, method: int) -> SignInPlugin:
        plugin = self._plugins.get(provider)
        if plugin is None:
            raise OperationError("NotFoundError", f"No plugin signs in at {provider}.")
        if not 0 <= method < len(plugin.offer.methods):
            raise OperationError("BadRequest", f"{provider} has {len(plugin.offer.methods)} methods, from 0.")
        return plugin


class SignedInModel:
    """A model whose requests a plugin prepares, and sends if it has a `fetch`. Its loader runs at the first."""

    def __init__(self, providers: Providers, listed: ProviderList, plugin: SignInPlugin, info: ModelInfo) -> None:
        self._providers = providers
        self._list = listed
        self._plugin = plugin
        self._info = info
        self._model: ChatModel | None = None

    @property
    def info(self) -> ModelInfo:
        """What is known of the model."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the model's events until Finished."""
        try:
            self._model = self._model or await self._opened()
        except (OperationError, ModelUnavailable) as error:
            failed = APIError(data=APIErrorData(message=str(error), is_retryable=False))
            yield Finished("error", error=failed)
            return
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Finished) and event.error is not None:
                    self._model = None  # a host that was started anew has to load what the plugin set
                yield event

    async def aclose(self) -> None:
        """Do nothing: no connection is ours."""

    def _credential(self) -> JSON:
        return self._providers.credentials.signed_in(self._plugin.offer.provider) or {}

    async def _opened(self) -> ChatModel:
        plugin, provider_id = self._plugin, self._plugin.offer.provider
        provider: JSON = msgspec.to_builtins(self._list.details(provider_id))
        step = AuthStep(0, plugin.extension.name, "loader", credential=self._credential(), provider=provider)
        loaded = _converted(plugin, await plugin.step(step, HOST_LOAD.seconds), LoadedSignIn)
        options = loaded.options
        said = options.get("baseURL")
        url = said if isinstance(said, str) else resolved_url(self._providers.provider(provider_id).url, {})
        if not url:
            raise ModelUnavailable(
                f"The address of {provider_id} is not known, and {plugin.extension.name} names none."
            )
        url = url.rstrip("/")
        key, headers = options.get("apiKey"), options.get("headers")
        fetch = PluginFetch(plugin.host, plugin.extension, url, self._credential, MODEL_FIRST_BYTE.seconds)
        endpoint = Endpoint(
            base_url=url,
            key=key if isinstance(key, str) else None,
            headers=_converted(plugin, headers or {}, dict[str, str]),
            client=fetch if loaded.fetch else None,
        )
        return self._providers.open(self._info.ref, endpoint)


def _converted(plugin: SignInPlugin, value: Any, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise OperationError("BadRequest", f"{plugin.extension.name} gave an invalid answer: {error}.") from error
