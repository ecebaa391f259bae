"""The table of all providers (`Providers`): catalog and configuration merged.
It lists, chooses and opens models.

It reads nothing from a project's directory: settings, keys and environment are passed to it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.kit.lazy import load_object
from codeloop.model.catalog.catalog import Catalog
from codeloop.model.catalog.overrides import apply_overrides, is_allowed
from codeloop.model.catalog.services import (
    SERVICES_BY_PROTOCOL,
    WireProtocol,
    find_service,
    is_supported,
)
from codeloop.model.catalog.vendors import (
    DEPLOYMENT_PROVIDERS,
    LOCAL_SERVERS,
    LocalServer,
)
from codeloop.model.chat import ChatModel, ModelInfo, Prices
from codeloop.model.credentials.environment import find_environment_key, load_chain, remove_keys
from codeloop.model.credentials.store import Credentials
from codeloop.model.endpoints import make_endpoint, may_lack_responses
from codeloop.model.errors import (
    ModelUnavailable,
    UnknownModel,
    UnsupportedProtocol,
)
from codeloop.model.provider import (
    NO_ORIGINS,
    ConfigOrigins,
    Provider,
    has_device_sign_in,
    merge_with_own,
    read_concurrency,
    resolve_base_url,
    resolve_settings,
)
from codeloop.net.hosts import is_loopback
from codeloop.schema.config import Config
from codeloop.schema.wire import replace

if TYPE_CHECKING:
    from codeloop.model.catalog.local_servers import DiscoveredServer
    from codeloop.model.provider_hints import ProviderHints
    from codeloop.model.wire.endpoint import Endpoint

ADAPTERS: dict[WireProtocol, str] = {
    "openai-chat": "model.protocols.chat_completions.adapter:ChatCompletionsModel",
    "openai-responses": "model.protocols.responses.adapter:ResponsesModel",
    "anthropic-messages": "model.protocols.anthropic.adapter:AnthropicMessages",
    "anthropic-vertex": "model.protocols.anthropic.adapter:VertexMessages",
    "google-generate-content": "model.protocols.google.adapter:GoogleGenerateContent",
    "google-interactions": "model.protocols.google_interactions.adapter:GoogleInteractions",
    "bedrock-converse": "model.protocols.bedrock.adapter:BedrockConverse",
}
"""Protocol -> the name of its adapter, which is imported when a model is opened."""


class UsableProvider(Struct, frozen=True):
    """A provider that can be used now.

    `key_source`: `configuration`, `environment` (a variable, or a cloud's credentials),
    `credentials` (stored, or signed in), or `none`: without a key,
    which a configured address may not need.
    """

    provider: Provider
    key_source: str


class Providers:
    """All providers and models that the catalog and the configuration name.

    `environment` is the process's; `credentials` are the stored keys; `local` are the servers that
    are looked for on this machine; `origins` says where the configuration is from;
    `list_plugin_providers` returns the ids of the providers whose requests a plugin sends or signs,
    once the user has signed in.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        credentials: Credentials,
        environment: Mapping[str, str],
        local: Sequence[LocalServer] = LOCAL_SERVERS,
        origins: ConfigOrigins = NO_ORIGINS,
        list_plugin_providers: Callable[[], AbstractSet[str]] = frozenset,
    ) -> None:
        self.config = config
        self._catalog = catalog
        self.credentials = credentials
        self.environment = environment
        self.find_setting = origins.find_setting
        self._local = {server.id: server for server in local}
        self.list_plugin_providers = list_plugin_providers
        self._own = origins.own
        self._slots: dict[str, asyncio.Semaphore] = {}
        """By provider with `options.concurrency`: the semaphore of its requests."""

    def list_enabled(self) -> list[Provider]:
        """Return every provider that the configuration does not switch off: the
        configured ones first.
        """
        return [provider for provider in self.list_all() if self.is_enabled(provider.id)]

    def list_all(self) -> list[Provider]:
        """Return every provider, those that the configuration switches off too:
        the configured ones first.
        """
        ids = [
            *self.config.provider,
            *(row.id for row in self._catalog.list_providers()),
            *self._local,
        ]
        providers = (self._find_provider(provider_id) for provider_id in dict.fromkeys(ids))
        return [provider for provider in providers if provider is not None]

    def is_unsupported(self, provider: Provider) -> bool:
        """Return whether no model of a provider is served by a protocol that codeloop speaks."""
        if is_supported(provider.npm, provider.id):
            return False
        return all(find_service(model) is None for model in self.list_all_models(provider).values())

    def list_all_models(self, provider: Provider) -> dict[str, ModelInfo]:
        """Return all models of a provider by id, those too that the configuration excludes."""
        info = self._catalog.find_provider(provider.id)
        return apply_overrides(
            info.models if info else {},
            provider.config,
            provider.id,
            provider.npm,
            include_excluded=True,
        )

    def list_usable(self) -> list[UsableProvider]:
        """Return the providers that have a key or a sign-in,
        or may need none because their address is configured.
        """
        stored_keys = self.credentials.read_entries()
        return [
            UsableProvider(provider, source)
            for provider in self.list_enabled()
            if (source := self.find_key_source(provider, stored_keys.keys()))
        ]

    def get_provider(self, provider_id: str) -> Provider:
        """Return one provider. Raises `UnknownModel` when it is unknown or switched off."""
        from codeloop.kit.text.suggest import find_similar, format_suggestion

        provider = self._find_provider(provider_id)
        if provider is not None and self.is_enabled(provider_id):
            return provider
        if not self.is_enabled(provider_id):
            raise UnknownModel(
                f"The provider `{provider_id}` is switched off by `enabled_providers` or `disabled_providers`."
            )
        names = find_similar(provider_id, (provider.id for provider in self.list_enabled()))
        raise UnknownModel(
            f"There is no provider `{provider_id}`.{format_suggestion(names)} `codeloop models --all` lists them."
        )

    def list_models(self, provider_id: str) -> dict[str, ModelInfo]:
        """Return the models of a provider by id. Raises `UnknownModel` as `get_provider` does."""
        provider = self.get_provider(provider_id)
        info = self._catalog.find_provider(provider_id)
        return apply_overrides(
            info.models if info else {}, provider.config, provider_id, provider.npm
        )

    def find_model(self, ref: str) -> ModelInfo:
        """Return the model that `provider/model` names.

        A provider without a list of models (a local server, a configured address) takes any name.
        Raises `UnknownModel`, naming up to three that are similar.
        """
        from codeloop.kit.text.suggest import find_similar, format_suggestion

        provider_id, slash, model_id = ref.partition("/")
        if not slash or not model_id:
            refs = [
                f"{usable.provider.id}/{name}"
                for usable in self.list_usable()
                for name in self.list_models(usable.provider.id)
            ]
            raise UnknownModel(
                f"`{ref}` names no model: write provider/model.{format_suggestion(find_similar(ref, refs, parts=True))}"
            )
        # Split at the first slash only: ids of gateways contain slashes, such as
        # `openrouter/openai/gpt-5`.
        models = self.list_models(provider_id)
        model = models.get(model_id)
        if model is not None:
            return model
        provider = self.get_provider(provider_id)
        if (provider.accepts_any_model or not provider.has_model_list) and is_allowed(
            model_id, provider.config
        ):
            # A local server costs nothing; a configured address may cost something,
            # but nobody knows how much.
            prices = Prices(is_known=provider.accepts_any_model)
            return ModelInfo(
                provider_id=provider_id, id=model_id, name=model_id, npm=provider.npm, prices=prices
            )
        names = [f"{provider_id}/{name}" for name in find_similar(model_id, models, parts=True)]
        raise UnknownModel(
            f"The provider `{provider_id}` has no model `{model_id}`.{format_suggestion(names)} "
            f"`codeloop models {provider_id}` lists them; "
            f"a newer one is added in codeloop.json under provider.{provider_id}.models."
        )

    def open_model(self, ref: str, plugin_endpoint: "Endpoint | None" = None) -> ChatModel:
        """Return the model, without sending anything yet.
        `plugin_endpoint`: one through which a plugin sends requests.

        Raises `ModelUnavailable`: unknown name, missing key, a key for another origin,
        an unsupported protocol.
        """
        info = self.find_model(ref)
        service = find_service(info)
        if service is None:
            environment_key = find_environment_key(
                self.get_provider(info.provider_id).env, self.environment
            )
            hint = (
                f" The key of {environment_key.variable} does not help." if environment_key else ""
            )
            raise UnsupportedProtocol(
                f"`{ref}` is served by the protocol of `{info.protocol or info.npm}`, which codeloop does not speak "
                f"yet (it speaks {', '.join(sorted(SERVICES_BY_PROTOCOL))}).{hint}\n"
                f"Use the model through another provider, or set provider.{info.provider_id}.npm and options.baseURL "
                "if the service also speaks one of these."
            )
        # Imported here: lists of models and settings need no adapter.
        from codeloop.model.quirks import find_quirks
        from codeloop.model.wrappers.retrying_model import RetryingModel

        provider = self.get_provider(info.provider_id)
        endpoint = plugin_endpoint or make_endpoint(
            provider, self.credentials, self.environment, service
        )
        hints = make_hints(self, provider, info, is_sent_by_plugin=plugin_endpoint is not None)
        cache = self._catalog.cache
        refusals = None if cache is None else cache / "refused-fields"
        endpoint = replace(endpoint, hints=hints, known_refusals=refusals)
        model: ChatModel = load_object(ADAPTERS[service.protocol])(
            info, endpoint, find_quirks(info)
        )
        if may_lack_responses(provider, info, endpoint.base_url):
            from codeloop.model.wrappers.responses_or_chat import offer_chat

            model = offer_chat(model, load_object(ADAPTERS["openai-chat"]), endpoint, cache)
        if (limit := read_concurrency(provider)) is not None:
            from codeloop.model.wrappers.queued_model import QueuedModel

            model = QueuedModel(
                model, self._slots.setdefault(provider.id, asyncio.Semaphore(limit))
            )
        # Outside `QueuedModel`, so that a request that waits for its next attempt holds no slot.
        model = RetryingModel(model)
        if plugin_endpoint or not is_loopback(urlsplit(endpoint.base_url).hostname or ""):
            return model
        from codeloop.model.local.local_model import wrap_local_model

        return wrap_local_model(model, endpoint.base_url, provider.config.models.get(info.id))

    async def discover_local_servers(self) -> "list[DiscoveredServer]":
        """Return the servers on this machine that answer now, with the ids of their models."""
        from codeloop.model.catalog.local_servers import discover_servers

        return await discover_servers(
            [server for server in self._local.values() if self.is_enabled(server.id)]
        )

    def choose_small_model(self, ref: str) -> str | None:
        """Return the model for titles: the configured one, or a small one of the provider of `ref`,
        if any.
        """
        if self.config.small_model:
            return self.find_model(self.config.small_model).ref
        from codeloop.model.catalog.model_choice import choose_small_model

        provider_id, _, model_name = ref.partition("/")
        model = choose_small_model(list_choices(self, provider_id).values(), model_name)
        return model.ref if model else None

    def make_child_environment(self) -> dict[str, str]:
        """Return the environment for child processes,
        without providers' variables and known keys.
        """
        try:
            secrets = self.credentials.list_secrets()
        except ModelUnavailable:
            # A broken file of credentials is reported where a key is needed, not at each command.
            secrets = set[str]()
        config_keys = {
            str(row.options.get("apiKey") or "") for row in self.config.provider.values()
        }
        return remove_keys(
            self.environment, self._catalog, secrets | config_keys, self.config.sandbox.variables
        )

    def is_enabled(self, provider_id: str) -> bool:
        """Return whether the configuration does not switch a provider off."""
        only = self.config.enabled_providers
        return provider_id not in self.config.disabled_providers and (
            only is None or provider_id in only
        )

    def _find_provider(self, provider_id: str) -> Provider | None:
        row, local = self._catalog.find_row(provider_id), self._local.get(provider_id)
        return merge_with_own(
            provider_id, row, self.config.provider.get(provider_id), local, self._own
        )

    def find_key_source(self, provider: Provider, stored_names: AbstractSet[str]) -> str:
        """Return the source of a provider's key, as in `UsableProvider`;
        empty: no key and no configured address.
        """
        if provider.configured_key or provider.has_key_helper:
            return "configuration"
        if is_signed_in(self, provider):
            return "credentials"
        if resolve_base_url(provider, self.environment) is None:
            return ""
        if find_environment_key(provider.env, self.environment):
            return "environment"
        if provider.id in stored_names:
            return "credentials"
        chain = load_chain(provider.id)
        if chain is not None and chain.describe_credentials(
            resolve_settings(provider, self.environment)
        ):
            return "environment"
        return "none" if provider.has_configured_url else ""


# Functions over `Providers`, of which these need the public part only.
def list_choices(providers: Providers, provider_id: str) -> dict[str, ModelInfo]:
    """Return the models of a provider that may be chosen without the user naming them.

    All of them; but only the configured ones where models have to be deployed or, on this machine,
    loaded first.
    """
    models, provider = providers.list_models(provider_id), providers.get_provider(provider_id)
    if provider_id not in DEPLOYMENT_PROVIDERS and not provider.accepts_any_model:
        return models
    return {name: models[name] for name in provider.config.models if name in models}


def make_hints(
    providers: Providers,
    provider: Provider,
    info: ModelInfo | None = None,
    *,
    is_sent_by_plugin: bool = False,
) -> "ProviderHints":
    """Return the hints for a provider, or for one of its models.

    `is_sent_by_plugin`: whether a plugin, with which the user signed in, sends the requests.
    """
    from codeloop.model.provider_hints import ProviderHints

    return ProviderHints(
        provider=provider,
        info=info or ModelInfo(provider_id=provider.id, id="", name=""),
        credentials=providers.credentials,
        environment=providers.environment,
        find_setting=providers.find_setting,
        list_models=lambda: providers.list_models(provider.id),
        is_sent_by_plugin=is_sent_by_plugin,
    )


def is_signed_in(providers: Providers, provider: Provider) -> bool:
    """Return whether the user signed in at a provider: by a device code, or with a plugin
    (`list_plugin_providers`).
    """
    if has_device_sign_in(provider, providers.credentials):
        return True
    return (
        provider.id in providers.list_plugin_providers()
        and providers.credentials.find_sign_in(provider.id) is not None
    )
