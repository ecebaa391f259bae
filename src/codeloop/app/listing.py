"""Providers and their models as clients list them, without any key."""

import asyncio
from collections.abc import Iterable

from codeloop.app.models import OneModel, Source
from codeloop.config.shown import open_address, open_options, open_settings
from codeloop.model.chat import ModelInfo
from codeloop.model.discover import Found
from codeloop.model.preference import local_model, preferred_model
from codeloop.model.providers import Providers
from codeloop.model.service import Provider
from codeloop.schema.providers import (
    CachePrice,
    KnownProviders,
    Modalities,
    ModelApi,
    ModelCapabilities,
    ModelDetails,
    ModelLimit,
    ModelPrice,
    ProviderDetails,
    Source as Origin,
    UsableProviders,
)

_SOURCES: dict[str, Origin] = {"configuration": "config", "none": "config", "environment": "env", "credentials": "api"}
_TEXT = Modalities(text=True, audio=False, image=False, video=False, pdf=False)


class Listing:
    """The providers of a project as clients see them. A provider's models are put together once.

    `source` is what the project's models come from: one that stands in for all is listed first.
    """

    def __init__(self, providers: Providers, source: Source) -> None:
        self._providers = providers
        self._alone = source.info if isinstance(source, OneModel) else None
        self._models: dict[str, dict[str, ModelDetails]] = {}
        self._default: dict[str, str] = {}
        self._building = asyncio.Lock()

    async def usable(self) -> UsableProviders:
        """Give the providers that can be used now: with a key, without need of one, or answering on this machine."""
        sources = self._sources()
        listed = [self._details(self._providers.provider(name), source) for name, source in sources.items()]
        listed = [*self._standing_in(), *(each for each in listed if each.models)]
        listed = _with_local(listed, await self._answering())
        return UsableProviders(providers=listed, default=self._defaults(listed))

    async def known(self) -> KnownProviders:
        """Give every provider there is."""
        async with self._building:  # the first time thousands of models are read
            listed = await asyncio.to_thread(self._everything)
        found = await self._answering()
        listed = _with_local([*self._standing_in(), *listed], found)
        alone = [self._alone.provider_id] if self._alone else []
        connected = dict.fromkeys((*alone, *self._sources(), *(each.id for each in found)))
        return KnownProviders(all=listed, default=self._defaults(listed), connected=list(connected))

    def _everything(self) -> list[ProviderDetails]:
        sources = self._sources()
        return [self._details(each, sources.get(each.id, "custom")) for each in self._providers.all()]

    def _sources(self) -> dict[str, Origin]:
        """Give the ids of the providers that have a key or need none, and where it is from."""
        return {each.provider.id: _SOURCES[each.source] for each in self._providers.usable()}

    def _standing_in(self) -> list[ProviderDetails]:
        info = self._alone
        if info is None:
            return []
        self._default[info.provider_id] = info.id
        models = {info.id: _model(info, "")}
        return [
            ProviderDetails(
                id=info.provider_id, name=info.provider_id, source="custom", env=[], options={}, models=models
            )
        ]

    def _details(self, provider: Provider, source: Origin) -> ProviderDetails:
        models = self._models.get(provider.id)
        if models is None:
            infos = self._providers.models(provider.id)
            url = open_address(provider.url)
            models = self._models[provider.id] = {name: _model(info, url) for name, info in infos.items()}
            preferred = preferred_model(infos.values())
            if preferred is not None:
                self._default[provider.id] = preferred.id
        return ProviderDetails(
            id=provider.id,
            name=provider.name,
            source=source,
            env=list(provider.env),
            options=open_options(provider.config.options),
            models=models,
        )

    def _defaults(self, listed: Iterable[ProviderDetails]) -> dict[str, str]:
        """Give the model to begin with of each provider that has one."""
        found = {each.id: self._default.get(each.id) or next(iter(each.models), None) for each in listed}
        return {name: model for name, model in found.items() if model is not None}

    async def _answering(self) -> list[ProviderDetails]:
        """Give the servers on this machine that answer, with their models; those that can converse come first."""
        return [self._local(found) for found in await self._providers.answering()]

    def _local(self, found: Found) -> ProviderDetails:
        preferred = local_model(found.models)
        ids = dict.fromkeys((*([preferred] if preferred else []), *found.models))
        infos = (self._providers.info(f"{found.server.id}/{model}") for model in ids)
        models = {info.id: _model(info, found.server.url) for info in infos}
        return ProviderDetails(
            id=found.server.id, name=found.server.name, source="custom", env=[], options={}, models=models
        )


def _with_local(listed: list[ProviderDetails], found: list[ProviderDetails]) -> list[ProviderDetails]:
    """Put servers that answer in the place of what is known of them without asking, unless it lists models."""
    answering = {each.id: each for each in found}
    known = [each if each.models else answering.pop(each.id, each) for each in listed]
    there = {each.id for each in listed}
    return [*known, *(each for name, each in answering.items() if name not in there)]


def _model(info: ModelInfo, url: str) -> ModelDetails:
    reads = Modalities(
        text="text" in info.input,
        audio="audio" in info.input,
        image="image" in info.input,
        video="video" in info.input,
        pdf="pdf" in info.input,
    )
    prices, limits = info.prices, info.limits
    return ModelDetails(
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
            input=reads,
            output=_TEXT,
            interleaved={"field": info.reasoning_field} if info.reasoning_field else False,
        ),
        cost=ModelPrice(
            input=prices.input, output=prices.output, cache=CachePrice(read=prices.cache_read, write=prices.cache_write)
        ),
        limit=ModelLimit(context=limits.context, output=limits.output, input=limits.input or None),
        status=_STATUS.get(info.status, "active"),
        options=open_settings(info.options),
        headers={},
        release_date=info.release_date,
        variants={},
    )
