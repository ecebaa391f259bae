"""The provider table: the catalog's rows with the configuration laid over them, and what opens a model of one.

`Providers` only looks things up in values that it is given; nothing is read from a project's directory here.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from codeloop.model.anthropic import AnthropicMessages
from codeloop.model.catalog import Catalog
from codeloop.model.chat import ChatModel, ModelInfo
from codeloop.model.credentials import Credentials
from codeloop.model.discover import Found, discover
from codeloop.model.environment import clean_environment, environment_key
from codeloop.model.openai_chat import OpenAIChat
from codeloop.model.overlay import listed, overlaid
from codeloop.model.preference import local_model, preferred_model, similar, small_model
from codeloop.model.quirks import quirks_of
from codeloop.model.retry import Retry
from codeloop.model.service import NO_PROVIDER_CONFIG, Provider, endpoint_of, provider_of, resolved_url
from codeloop.model.unavailable import ModelUnavailable, NoModel, UnknownModel, UnspokenProtocol
from codeloop.model.vendors import LOCAL_SERVERS, NEEDS_CHOICE, PREFERRED_PROVIDERS, PROTOCOLS, LocalServer
from codeloop.schema.config import Config

NO_MODEL = """No model is configured, no key of a provider is set, and no local model server answers.
Store a key with `codeloop auth login anthropic` (or openai, openrouter, ...), or set one such as ANTHROPIC_API_KEY;
or start a local server (such as Ollama), or name one in codeloop.json: {"model": "provider/model"}."""


class Usable(Struct, frozen=True):
    """A provider that can be used now.

    `source` says where its key is from: configuration, environment, credentials, none (it needs none).
    """

    provider: Provider
    source: str


class Providers:
    """All providers and models that the catalog and the configuration name.

    `environment` is the process's; `credentials` are the stored keys; `local` are the servers that are looked for on
    this machine.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        credentials: Credentials,
        environment: Mapping[str, str],
        local: Sequence[LocalServer] = LOCAL_SERVERS,
    ) -> None:
        self._config = config
        self._catalog = catalog
        self.credentials = credentials
        self._environment = environment
        self._local = {server.id: server for server in local}

    def all(self) -> list[Provider]:
        """Give every provider that the configuration does not switch off: the configured ones first."""
        ids = [*self._config.provider, *(row.id for row in self._catalog.providers()), *self._local]
        found = (self._provider(provider_id) for provider_id in dict.fromkeys(ids))
        return [provider for provider in found if provider is not None]

    def usable(self) -> list[Usable]:
        """Give the providers that have a key, or need none because the configuration says where they are."""
        stored = self.credentials.entries()
        found: list[Usable] = []
        for provider in self.all():
            source = self._source(provider, stored.keys())
            if source:
                found.append(Usable(provider, source))
        return found

    def provider(self, provider_id: str) -> Provider:
        """Give one provider. Raises `UnknownModel` when there is none of that id or it is switched off."""
        provider = self._provider(provider_id)
        if provider is not None:
            return provider
        if not self._enabled(provider_id):
            raise UnknownModel(
                f"The provider `{provider_id}` is switched off by `enabled_providers` or `disabled_providers`."
            )
        names = similar(provider_id, (known.id for known in self.all()))
        raise UnknownModel(f"There is no provider `{provider_id}`.{_meant(names)} `codeloop models --all` lists them.")

    def models(self, provider_id: str) -> dict[str, ModelInfo]:
        """Give the models of a provider by id. Raises `UnknownModel` as `provider` does."""
        provider = self.provider(provider_id)
        info = self._catalog.provider(provider_id)
        return overlaid(info.models if info else {}, provider.config, provider_id, provider.npm)

    def info(self, ref: str) -> ModelInfo:
        """Give the model that `provider/model` names.

        A provider whose models nobody lists (a local server, a configured address) takes any name.
        Raises `UnknownModel`, naming up to three that are similar.
        """
        provider_id, slash, model_id = ref.partition("/")
        if not slash or not model_id:
            raise UnknownModel(f"`{ref}` names no model: write provider/model.{_meant(self._refs_like(ref))}")
        models = self.models(provider_id)
        found = models.get(model_id)
        if found is not None:
            return found
        provider = self.provider(provider_id)
        if (provider.open_ended or not provider.lists_models) and listed(model_id, provider.config):
            return ModelInfo(provider_id=provider_id, id=model_id, name=model_id, npm=provider.npm)
        names = [f"{provider_id}/{name}" for name in similar(model_id, models)]
        raise UnknownModel(
            f"The provider `{provider_id}` has no model `{model_id}`.{_meant(names)} `codeloop models {provider_id}` "
            f"lists them; a newer one is added in codeloop.json under provider.{provider_id}.models."
        )

    def open(self, ref: str) -> ChatModel:
        """Give the model, ready to be asked; nothing is sent yet.

        Raises `ModelUnavailable`: unknown name, missing key, a key for another origin, a protocol that we do not speak.
        """
        info = self.info(ref)
        protocol = PROTOCOLS.get(info.npm)
        if protocol is None:
            spoken = ", ".join(sorted(set(PROTOCOLS.values())))
            raise UnspokenProtocol(
                f"`{ref}` is served by the protocol of `{info.npm}`, which codeloop does not speak yet "
                f"(it speaks {spoken}).\n"
                f"Use the model through another provider, or set provider.{info.provider_id}.npm and options.baseURL "
                "if the service also speaks one of these."
            )
        endpoint = endpoint_of(self.provider(info.provider_id), self.credentials, self._environment)
        match protocol:
            case "openai-chat":
                return Retry(OpenAIChat(info, endpoint, quirks_of(info)))
            case "anthropic-messages":
                return Retry(AnthropicMessages(info, endpoint, quirks_of(info)))

    async def default(self, chosen: str | None = None) -> str:
        """Give the `provider/model` to use when the person named none: `chosen` (the configured one) if there is.

        Then: a configured provider that lists models, a key in the environment, a stored key, a local server that
        answers. Raises `NoModel` when there is nothing, `UnknownModel` when `chosen` does not exist.
        """
        if chosen or self._config.model:
            return self.info(chosen or self._config.model or "").ref
        by_source: dict[str, list[Provider]] = {}
        for usable in self.usable():
            by_source.setdefault(usable.source, []).append(usable.provider)
        listed = [
            provider
            for source in ("configuration", "none", "environment", "credentials")
            for provider in by_source.get(source, [])
            if provider.config.models
        ]
        for provider in (*listed, *self._by_preference(by_source)):
            model = preferred_model(self.models(provider.id).values())
            if model is not None:
                return model.ref
        return await self._found_locally()

    async def answering(self) -> list[Found]:
        """Give the servers on this machine that answer now, with the ids of their models."""
        return await discover([server for server in self._local.values() if self._enabled(server.id)])

    def small(self, ref: str) -> str | None:
        """Give the model for titles and summaries beside `ref`: the configured one, or a small one of its provider."""
        if self._config.small_model:
            return self.info(self._config.small_model).ref
        model = small_model(self.models(ref.partition("/")[0]).values())
        return model.ref if model else None

    def child_environment(self) -> dict[str, str]:
        """Give the environment for child processes: no provider's variables, no key that we hold."""
        return clean_environment(self._environment, self._catalog, self._keys())

    def _keys(self) -> set[str]:
        try:
            stored = {entry.key for entry in self.credentials.entries().values()}
        except ModelUnavailable:
            stored = set[str]()
        configured = {str(row.options.get("apiKey") or "") for row in self._config.provider.values()}
        return stored | configured

    async def _found_locally(self) -> str:
        for found in await self.answering():
            model = local_model(found.models)
            if model is not None:
                return f"{found.server.id}/{model}"
        raise NoModel(NO_MODEL)

    def _by_preference(self, by_source: Mapping[str, list[Provider]]) -> list[Provider]:
        rank = {provider_id: place for place, provider_id in enumerate(PREFERRED_PROVIDERS)}
        ordered: list[Provider] = []
        for source in ("configuration", "environment", "credentials", "none"):
            group = [
                provider
                for provider in by_source.get(source, [])
                if source != "environment" or provider.id not in NEEDS_CHOICE
            ]
            ordered += sorted(group, key=lambda provider: rank.get(provider.id, len(rank)))
        return ordered

    def _enabled(self, provider_id: str) -> bool:
        only = self._config.enabled_providers
        return provider_id not in self._config.disabled_providers and (only is None or provider_id in only)

    def _provider(self, provider_id: str) -> Provider | None:
        if not self._enabled(provider_id):
            return None
        config = self._config.provider.get(provider_id, NO_PROVIDER_CONFIG)
        return provider_of(provider_id, self._catalog.row(provider_id), config, self._local.get(provider_id))

    def _source(self, provider: Provider, stored: AbstractSet[str]) -> str:
        """Say where the provider's key would come from; empty when it can't be used."""
        if provider.configured_key:
            return "configuration"
        if resolved_url(provider.url, self._environment) is None:
            return ""
        if environment_key(provider.env, self._environment):
            return "environment"
        if provider.id in stored:
            return "credentials"
        return "none" if provider.configured_url else ""

    def _refs_like(self, name: str) -> list[str]:
        refs = [
            f"{usable.provider.id}/{model}" for usable in self.usable() for model in self.models(usable.provider.id)
        ]
        return similar(name, refs)


def _meant(names: Sequence[str]) -> str:
    return f" Did you mean {', '.join(f'`{name}`' for name in names)}?" if names else ""
