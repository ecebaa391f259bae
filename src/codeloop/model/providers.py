"""The provider table: the catalog merged with the configuration, and opening of models.

`Providers` only looks things up in values that it is given; nothing is read from a project's directory here.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.kit.lazy import load
from codeloop.kit.suggest import find_similar, suggest_names
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.overrides import apply_overrides, is_allowed
from codeloop.model.catalog.services import BY_NAME, Protocol, is_spoken, service_of
from codeloop.model.catalog.vendors import (
    LOCAL_SERVERS,
    NEEDS_CHOICE,
    NEEDS_DEPLOYMENT,
    PREFERRED_PROVIDERS,
    LocalServer,
)
from codeloop.model.chat import ChatModel, ModelInfo, Prices
from codeloop.model.credentials.chains import chain_of
from codeloop.model.credentials.environment import clean_environment, environment_key
from codeloop.model.credentials.store import Credentials
from codeloop.model.errors import ModelUnavailable, NoKey, NoModel, UnknownModel, UnspokenProtocol, WrongOrigin
from codeloop.model.provider import (
    NO_PROVIDER_CONFIG,
    Provider,
    SettingOrigin,
    address_of,
    concurrency_of,
    endpoint_of,
    find_no_origin,
    has_device_sign_in,
    provider_of,
    settings_of,
)
from codeloop.net.origin import is_loopback
from codeloop.schema.config import Config, ModelConfig
from codeloop.schema.wire import replace

if TYPE_CHECKING:
    from codeloop.model.catalog.local_servers import DiscoveredServer
    from codeloop.model.hints import ProviderHints
    from codeloop.model.quirks import Quirks
    from codeloop.model.wire.endpoint import Endpoint

ADAPTERS: dict[Protocol, str] = {
    "openai-chat": "model.protocols.chat_completions.adapter:OpenAIChat",
    "openai-responses": "model.protocols.responses.adapter:OpenAIResponses",
    "anthropic-messages": "model.protocols.anthropic.adapter:AnthropicMessages",
    "anthropic-vertex": "model.protocols.anthropic.vertex:VertexMessages",
    "google-generate-content": "model.protocols.google.adapter:GoogleGenerateContent",
    "google-interactions": "model.protocols.google_interactions.adapter:GoogleInteractions",
    "bedrock-converse": "model.protocols.bedrock.adapter:BedrockConverse",
}
"""Protocol -> its adapter."""

DISABLED = "disabled by configuration"
NO_KEY = "no key"
NO_MODEL = """No model is configured, no key of a provider is set, and no local model server answers.
Store a key with `codeloop auth login anthropic` (or openai, openrouter, ...), or set one such as ANTHROPIC_API_KEY;
or start a local server (such as Ollama), or name one in codeloop.json: {"model": "provider/model"}."""


class UsableProvider(Struct, frozen=True):
    """A provider that can be used now.

    `source`: where its key is from: configuration, environment, credentials, none (not needed).
    """

    provider: Provider
    source: str


class Providers:
    """All providers and models that the catalog and the configuration name.

    `environment` is the process's; `credentials` are the stored keys; `local` are the servers that are looked for on
    this machine; `config_files` finds the file that a setting was read from; `signs_in` returns the providers whose
    requests a plugin sends or signs for the user who signed in.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        credentials: Credentials,
        environment: Mapping[str, str],
        local: Sequence[LocalServer] = LOCAL_SERVERS,
        config_files: SettingOrigin = find_no_origin,
        signs_in: Callable[[], AbstractSet[str]] = frozenset,
    ) -> None:
        self._config = config
        self._catalog = catalog
        self.credentials = credentials
        self.environment = environment
        self.config_files = config_files
        self._local = {server.id: server for server in local}
        self.signs_in = signs_in
        self._slots: dict[str, asyncio.Semaphore] = {}
        """By provider with `options.concurrency`: the semaphore of its requests."""

    def all(self) -> list[Provider]:
        """Return every provider that the configuration does not switch off: the configured ones first."""
        return [provider for provider in self.list_all() if self._is_enabled(provider.id)]

    def list_all(self) -> list[Provider]:
        """Return every provider, those that the configuration switches off too: the configured ones first."""
        ids = [*self._config.provider, *(row.id for row in self._catalog.providers()), *self._local]
        providers = (self._provider(provider_id) for provider_id in dict.fromkeys(ids))
        return [provider for provider in providers if provider is not None]

    def why_not(self, provider: Provider, stored_names: AbstractSet[str]) -> str:
        """Return why a provider is unusable, in a few words; empty if usable, or unknown without a request.

        `stored_names`: the providers whose keys are stored.
        """
        if not self._is_enabled(provider.id):
            return DISABLED
        if self.is_unspoken(provider):
            return f"protocol not spoken yet ({provider.npm})"
        if is_signed_in(self, provider):
            return ""
        try:
            endpoint_of(provider, self.credentials, self.environment)
        except NoKey:
            return NO_KEY
        except WrongOrigin:
            return "its key is for another address"
        except ModelUnavailable:
            return "address not known"
        is_local = is_loopback(urlsplit(address_of(provider, self.environment) or "").hostname or "")
        return "" if is_local or self._source(provider, stored_names) else NO_KEY

    def is_unspoken(self, provider: Provider) -> bool:
        """Return whether no model of a provider is served by a protocol that codeloop speaks."""
        if is_spoken(provider.npm, provider.id):
            return False
        return all(service_of(model) is None for model in self.listing(provider).values())

    def listing(self, provider: Provider) -> dict[str, ModelInfo]:
        """Return all models of a provider by id, those too that the configuration excludes."""
        info = self._catalog.provider(provider.id)
        return apply_overrides(
            info.models if info else {}, provider.config, provider.id, provider.npm, include_excluded=True
        )

    def usable(self) -> list[UsableProvider]:
        """Return the providers that have a key, or need none because the configuration says where they are."""
        stored_keys = self.credentials.entries()
        usable_providers: list[UsableProvider] = []
        for provider in self.all():
            source = self._source(provider, stored_keys.keys())
            if source:
                usable_providers.append(UsableProvider(provider, source))
        return usable_providers

    def provider(self, provider_id: str) -> Provider:
        """Return one provider. Raises `UnknownModel` when it is unknown or switched off."""
        provider = self._provider(provider_id)
        if provider is not None and self._is_enabled(provider_id):
            return provider
        if not self._is_enabled(provider_id):
            raise UnknownModel(
                f"The provider `{provider_id}` is switched off by `enabled_providers` or `disabled_providers`."
            )
        names = find_similar(provider_id, (provider.id for provider in self.all()))
        raise UnknownModel(
            f"There is no provider `{provider_id}`.{suggest_names(names)} `codeloop models --all` lists them."
        )

    def models(self, provider_id: str) -> dict[str, ModelInfo]:
        """Return the models of a provider by id. Raises `UnknownModel` as `provider` does."""
        provider = self.provider(provider_id)
        info = self._catalog.provider(provider_id)
        return apply_overrides(info.models if info else {}, provider.config, provider_id, provider.npm)

    def info(self, ref: str) -> ModelInfo:
        """Return the model that `provider/model` names.

        A provider without a list of models (a local server, a configured address) takes any name.
        Raises `UnknownModel`, naming up to three that are similar.
        """
        provider_id, slash, model_id = ref.partition("/")
        if not slash or not model_id:
            refs = [
                f"{usable.provider.id}/{name}" for usable in self.usable() for name in self.models(usable.provider.id)
            ]
            raise UnknownModel(
                f"`{ref}` names no model: write provider/model.{suggest_names(find_similar(ref, refs, parts=True))}"
            )
        models = self.models(provider_id)
        model = models.get(model_id)
        if model is not None:
            return model
        provider = self.provider(provider_id)
        if (provider.open_ended or not provider.lists_models) and is_allowed(model_id, provider.config):
            free = Prices(is_known=provider.open_ended)
            return ModelInfo(provider_id=provider_id, id=model_id, name=model_id, npm=provider.npm, prices=free)
        names = [f"{provider_id}/{name}" for name in find_similar(model_id, models, parts=True)]
        raise UnknownModel(
            f"The provider `{provider_id}` has no model `{model_id}`.{suggest_names(names)} "
            f"`codeloop models {provider_id}` lists them; "
            f"a newer one is added in codeloop.json under provider.{provider_id}.models."
        )

    def open(self, ref: str, through: "Endpoint | None" = None) -> ChatModel:
        """Return the model, without sending anything yet. `through`: a plugin's endpoint.

        Raises `ModelUnavailable`: unknown name, missing key, a key for another origin, a protocol that we do not speak.
        """
        info = self.info(ref)
        service = service_of(info)
        if service is None:
            protocols = ", ".join(sorted(BY_NAME))
            environment_value = environment_key(self.provider(info.provider_id).env, self.environment)
            hint = f" The key of {environment_value[0]} does not help." if environment_value else ""
            raise UnspokenProtocol(
                f"`{ref}` is served by the protocol of `{info.protocol or info.npm}`, which codeloop does not speak "
                f"yet (it speaks {protocols}).{hint}\n"
                f"Use the model through another provider, or set provider.{info.provider_id}.npm and options.baseURL "
                "if the service also speaks one of these."
            )
        from codeloop.model.quirks import quirks_of
        from codeloop.model.retry import RetryingModel

        provider = self.provider(info.provider_id)
        endpoint = through or endpoint_of(provider, self.credentials, self.environment, service)
        endpoint = replace(endpoint, hints=hints_of(self, provider, info, is_signed_in=through is not None))
        adapter: Callable[[ModelInfo, Endpoint, Quirks], ChatModel] = load(ADAPTERS[service.protocol])
        model: ChatModel = adapter(info, endpoint, quirks_of(info))
        if (most := concurrency_of(provider)) is not None:
            from codeloop.model.wire.concurrency import QueuedModel

            model = QueuedModel(model, self._slots.setdefault(provider.id, asyncio.Semaphore(most)))
        model = RetryingModel(model)  # a request waiting for a retry holds no slot
        return model if through else _with_local_context(model, info, endpoint, provider.config.models.get(info.id))

    async def default(self, preferred: str | None = None) -> str:
        """Return the default `provider/model`: `preferred`, else the configured one, if there is one.

        Then: a configured provider that lists models, a key in the environment, a stored key, a local server that
        answers. Raises `NoModel` when there is nothing, `UnknownModel` when that one does not exist.
        """
        if preferred or self._config.model:
            return self.info(preferred or self._config.model or "").ref
        from codeloop.model.catalog.default_model import choose_default

        by_source: dict[str, list[Provider]] = {}
        for usable in self.usable():
            by_source.setdefault(usable.source, []).append(usable.provider)
        providers = [
            provider
            for source in ("configuration", "none", "environment", "credentials")
            for provider in by_source.get(source, [])
            if provider.config.models
        ]
        for provider in (*providers, *_by_preference(by_source)):
            model = choose_default((choices_of(self, provider.id) or self.models(provider.id)).values())
            if model is not None:
                return model.ref
        return await self._find_local()

    async def answering(self) -> "list[DiscoveredServer]":
        """Return the servers on this machine that answer now, with the ids of their models."""
        from codeloop.model.catalog.local_servers import discover

        return await discover([server for server in self._local.values() if self._is_enabled(server.id)])

    def small_model(self, ref: str) -> str | None:
        """Return the model for titles: the configured one, or a small one of the provider of `ref`, if any."""
        if self._config.small_model:
            return self.info(self._config.small_model).ref
        from codeloop.model.catalog.default_model import small_model

        provider_id, _, model_name = ref.partition("/")
        model = small_model(choices_of(self, provider_id).values(), model_name)
        return model.ref if model else None

    def child_environment(self) -> dict[str, str]:
        """Return the environment for child processes, without providers' variables and known keys."""
        try:
            secrets = self.credentials.secrets()
        except ModelUnavailable:
            secrets = set[str]()
        config_keys = {str(row.options.get("apiKey") or "") for row in self._config.provider.values()}
        return clean_environment(self.environment, self._catalog, secrets | config_keys)

    async def _find_local(self) -> str:
        from codeloop.model.catalog.default_model import local_model

        for discovered_server in await self.answering():
            model = local_model(discovered_server.models)
            if model is not None:
                return f"{discovered_server.server.id}/{model}"
        raise NoModel(self._unspoken_keys() + NO_MODEL)

    def _unspoken_keys(self) -> str:
        """Return a line for every key of the environment whose provider's protocol is not spoken."""
        lines = ""
        for provider in self.all():
            environment_value = environment_key(provider.env, self.environment)
            if environment_value and provider.id not in NEEDS_CHOICE and self.is_unspoken(provider):
                lines += (
                    f"{environment_value[0]} is set, but codeloop does not speak the protocol of {provider.name} yet.\n"
                )
        return lines

    def _is_enabled(self, provider_id: str) -> bool:
        only = self._config.enabled_providers
        return provider_id not in self._config.disabled_providers and (only is None or provider_id in only)

    def _provider(self, provider_id: str) -> Provider | None:
        config = self._config.provider.get(provider_id, NO_PROVIDER_CONFIG)
        return provider_of(provider_id, self._catalog.row(provider_id), config, self._local.get(provider_id))

    def _source(self, provider: Provider, stored_names: AbstractSet[str]) -> str:
        """Return the source of the provider's key, as in `UsableProvider`; empty when it has none."""
        if provider.configured_key or provider.has_key_helper:
            return "configuration"
        if is_signed_in(self, provider):
            return "credentials"
        if address_of(provider, self.environment) is None:
            return ""
        if environment_key(provider.env, self.environment):
            return "environment"
        if provider.id in stored_names:
            return "credentials"
        chain = chain_of(provider.id)
        if chain is not None and chain.find(settings_of(provider, self.environment)):
            return "environment"
        return "none" if provider.configured_url else ""


def choices_of(providers: Providers, provider_id: str) -> dict[str, ModelInfo]:
    """Return the models of a provider that may be chosen without the user naming them.

    All of them; but only the configured ones where models have to be deployed or, on this machine, loaded first.
    """
    models, provider = providers.models(provider_id), providers.provider(provider_id)
    if provider_id not in NEEDS_DEPLOYMENT and not provider.open_ended:
        return models
    return {name: models[name] for name in provider.config.models if name in models}


def hints_of(
    providers: Providers, provider: Provider, info: ModelInfo | None = None, *, is_signed_in: bool = False
) -> "ProviderHints":
    """Return where a provider's key and address come from. `is_signed_in`: with a plugin that sends requests."""
    from codeloop.model.hints import ProviderHints

    info = info or ModelInfo(provider_id=provider.id, id="", name="")
    sources = (providers.credentials, providers.environment, providers.config_files)
    return ProviderHints(provider, info, *sources, lambda: providers.models(provider.id), is_signed_in)


def _with_local_context(model: ChatModel, info: ModelInfo, endpoint: "Endpoint", row: ModelConfig | None) -> ChatModel:
    """Wrap a model of a server on this machine, so that it asks the server for its real context length."""
    if not is_loopback(urlsplit(endpoint.base_url).hostname or ""):
        return model
    from codeloop.model.local.context import find_reader

    reader = find_reader(info.provider_id, endpoint.base_url)
    if reader is None:
        return model
    from codeloop.model.local.context_increase import find_increase
    from codeloop.model.local.model import ContextWish, LocalModel

    limit = row.limit if row is not None else None
    wish = ContextWish(
        find_increase(info.provider_id, endpoint.base_url), limit.context or 0 if limit is not None else 0
    )
    return LocalModel(model, reader, endpoint.base_url, wish)


def is_signed_in(providers: Providers, provider: Provider) -> bool:
    """Return whether the user signed in at a provider: by a device code, or with a plugin that sends its requests."""
    if has_device_sign_in(provider, providers.credentials):
        return True
    return provider.id in providers.signs_in() and providers.credentials.find_sign_in(provider.id) is not None


def _by_preference(by_source: Mapping[str, list[Provider]]) -> list[Provider]:
    rank = {provider_id: rank_number for rank_number, provider_id in enumerate(PREFERRED_PROVIDERS)}
    providers: list[Provider] = []
    for source in ("configuration", "environment", "credentials", "none"):
        group = [
            provider
            for provider in by_source.get(source, [])
            if source != "environment" or provider.id not in NEEDS_CHOICE
        ]
        providers += sorted(group, key=lambda provider: rank.get(provider.id, len(rank)))
    return providers
