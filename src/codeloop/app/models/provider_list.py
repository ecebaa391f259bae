"""Lists providers and their models in the form of the API, without keys.
For the handlers of providers.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache

from codeloop.app.models.open_models import ModelSource, SingleModel
from codeloop.config.redact import redact_address, redact_model_options, redact_provider_options
from codeloop.model.catalog.local_servers import DiscoveredServer
from codeloop.model.catalog.model_choice import choose_default_model, choose_local_model
from codeloop.model.catalog.services import find_service
from codeloop.model.catalog.variants import list_variants
from codeloop.model.chat import ModelInfo
from codeloop.model.credentials.system_keyring import has_keyring
from codeloop.model.errors import ModelUnavailable, UnknownModel
from codeloop.model.provider import Provider
from codeloop.model.providers import Providers, list_choices, make_hints
from codeloop.schema.api.providers import (
    CachePrice,
    KnownProviders,
    Modalities,
    Model,
    ModelApi,
    ModelCapabilities,
    ModelCost,
    ModelLimit,
    ModelStatus,
    ProviderDetails,
    ProviderSource,
    UsableProviders,
)
from codeloop.schema.wire import replace

_SOURCES: dict[str, ProviderSource] = {
    "configuration": "config",
    "none": "config",
    "environment": "env",
    "credentials": "api",
}
"""The sources of keys in the form of the API, by `UsableProvider.key_source`."""
_STATUSES: dict[str, ModelStatus] = {"alpha": "alpha", "beta": "beta", "deprecated": "deprecated"}
_TEXT_ONLY = Modalities(text=True, audio=False, image=False, video=False, pdf=False)


class ProviderList:
    """The providers of a project in the form of the API.
    The descriptions of models are cached by provider.

    `source`: the source of the project's models; a single model that replaces
    all others is listed first.
    """

    def __init__(self, providers: Providers, source: ModelSource) -> None:
        self.providers = providers
        self.source = source
        self._models: dict[str, dict[str, Model]] = {}
        self._default_models: dict[str, str] = {}
        self._description_lock = asyncio.Lock()

    async def list_usable(self) -> UsableProviders:
        """Return the providers that can be used now: with a key, without need of one,
        or answering on this machine.

        Each has only the models whose protocol is supported.
        The provider of the default model is the first.
        """
        first, preferred_model = await self._find_default_model()
        sources = self._list_sources()
        providers = [
            self._keep_supported_models(
                self._describe_provider(self.providers.get_provider(name), source)
            )
            for name, source in sources.items()
        ]
        providers = [
            *self._list_replacement(),
            *_add_local(providers, await self._list_answering()),
        ]
        providers = sorted(
            (each for each in providers if each.models), key=lambda each: each.id != first
        )
        default = self._choose_defaults(providers)
        if preferred_model in {
            model for each in providers if each.id == first for model in each.models
        }:
            default[first] = preferred_model
        return UsableProviders(providers=providers, default=default)

    async def list_known(self) -> KnownProviders:
        """Return all known providers, including those without a key."""
        usable = await self.list_usable()
        # The first call reads thousands of models; calls at the same time wait for its result.
        async with self._description_lock:
            providers = await asyncio.to_thread(self._list_all)
        providers_by_id = {
            each.id: each
            for each in (
                *providers,
                *(each for each in usable.providers if not self._has_descriptions(each.id)),
            )
        }
        default = {**self._choose_defaults(providers_by_id.values()), **usable.default}
        return KnownProviders(
            all=list(providers_by_id.values()),
            default=default,
            connected=[each.id for each in usable.providers],
            keyring=await has_keyring(),
        )

    def describe_provider(self, provider_id: str) -> ProviderDetails:
        """Describe one provider with its models.
        Raises UnknownModel if there is no such provider.
        """
        return self._describe_provider(self.providers.get_provider(provider_id), "custom")

    async def _find_default_model(self) -> tuple[str, str]:
        """Return the ids of the default model's provider and of the model itself;
        both "" if there is none.
        """
        with suppress(ModelUnavailable):
            provider_id, _, model_id = (await self.source.choose_default(None)).partition("/")
            return provider_id, model_id
        return "", ""

    def _has_descriptions(self, provider_id: str) -> bool:
        """Return whether descriptions of the provider's models are cached."""
        return bool(self._models.get(provider_id))

    def _list_all(self) -> list[ProviderDetails]:
        sources = self._list_sources()
        return [
            self._describe_provider(each, sources.get(each.id, "custom"))
            for each in self.providers.list_enabled()
        ]

    def _list_sources(self) -> dict[str, ProviderSource]:
        """Return the sources of keys, by the ids of the providers that have a key or need none."""
        return {
            each.provider.id: _SOURCES[each.key_source] for each in self.providers.list_usable()
        }

    def _list_replacement(self) -> list[ProviderDetails]:
        """Return the provider of the model that replaces all others;
        empty if there is no such model.
        """
        if not isinstance(self.source, SingleModel):
            return []
        info = self.source.info
        return [
            _describe_keyless(
                info.provider_id,
                info.provider_id.capitalize(),
                {info.id: _describe_model(info, "")},
            )
        ]

    def _describe_provider(self, provider: Provider, source: ProviderSource) -> ProviderDetails:
        models = self._models.get(provider.id)
        if models is None:
            infos = self.providers.list_models(provider.id)
            url = redact_address(provider.url)
            preferred_model = choose_default_model(
                (list_choices(self.providers, provider.id) or infos).values()
            )
            if preferred_model is not None:
                self._default_models[provider.id] = preferred_model.id
            models = self._models[provider.id] = {
                name: _describe_model(info, url) for name, info in infos.items()
            }
        return ProviderDetails(
            id=provider.id,
            name=provider.name,
            source=source,
            env=list(provider.env),
            options=redact_provider_options(provider.config.options),
            models=models,
            preferred_key=make_hints(self.providers, provider).describe_preferred_key(),
        )

    def _keep_supported_models(self, provider: ProviderDetails) -> ProviderDetails:
        """Return a provider without the models whose protocol is not supported."""
        infos = self.providers.list_models(provider.id)
        models = {
            name: model
            for name, model in provider.models.items()
            if find_service(infos[name]) is not None
        }
        return replace(provider, models=models)

    def _choose_defaults(self, providers: Iterable[ProviderDetails]) -> dict[str, str]:
        """Return the default model of each provider that has models."""
        defaults = {
            each.id: self._default_models.get(each.id) or next(iter(each.models), None)
            for each in providers
        }
        return {name: model for name, model in defaults.items() if model is not None}

    async def _list_answering(self) -> list[ProviderDetails]:
        """Return the model servers on this machine that answer,
        each with its most suitable model first.
        """
        return [
            self._describe_local(discovered_server)
            for discovered_server in await self.providers.discover_local_servers()
        ]

    def _describe_local(self, discovered_server: DiscoveredServer) -> ProviderDetails:
        best = choose_local_model(discovered_server.models)
        models: dict[str, Model] = {}
        for name in sorted(discovered_server.models, key=lambda name: name != best):
            # The configuration may exclude a model.
            with suppress(UnknownModel):
                models[name] = _describe_model(
                    self.providers.find_model(f"{discovered_server.server.id}/{name}"),
                    discovered_server.server.url,
                )
        return _describe_keyless(discovered_server.server.id, discovered_server.server.name, models)


def _describe_keyless(provider_id: str, name: str, models: dict[str, Model]) -> ProviderDetails:
    """Describe a provider that needs no key."""
    return ProviderDetails(
        id=provider_id, name=name, source="custom", env=[], options={}, models=models
    )


def _add_local(
    providers: list[ProviderDetails], local_providers: list[ProviderDetails]
) -> list[ProviderDetails]:
    """Add the local servers; for one that is configured,
    the models of the configuration are listed.
    """
    providers_by_id = {each.id: each for each in providers if each.models}
    return [
        *providers_by_id.values(),
        *(each for each in local_providers if each.id not in providers_by_id),
    ]


@lru_cache(maxsize=64)
def _make_modalities(names: frozenset[str]) -> Modalities:
    return Modalities(
        text="text" in names,
        audio="audio" in names,
        image="image" in names,
        video="video" in names,
        pdf="pdf" in names,
    )


def _describe_model(info: ModelInfo, url: str) -> Model:
    prices, limits = info.prices, info.limits
    return Model(
        id=info.id,
        provider_id=info.provider_id,
        api=ModelApi(id=info.api_id or info.id, url=url, npm=info.npm),
        name=info.name,
        family=info.family or None,
        capabilities=ModelCapabilities(
            temperature=info.temperature,
            reasoning=info.reasoning,
            attachment=info.attachment,
            toolcall=info.tool_call,
            input=_make_modalities(info.input),
            output=_TEXT_ONLY,
            interleaved={"field": info.reasoning_field} if info.reasoning_field else False,
        ),
        cost=ModelCost(
            input=prices.input,
            output=prices.output,
            cache=CachePrice(read=prices.cache_read, write=prices.cache_write),
        ),
        limit=ModelLimit(context=limits.context, output=limits.output, input=limits.input or None),
        status=_STATUSES.get(info.status, "active"),
        options=redact_model_options(info.options) if info.options else {},
        headers={},
        release_date=info.release_date,
        variants={
            name: redact_model_options(options) for name, options in list_variants(info).items()
        },
    )
