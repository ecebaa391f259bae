"""Chooses the model to use if none is named, among all that can be used."""

from collections.abc import Mapping

from codeloop.model.catalog.model_choice import choose_default_model, choose_local_model
from codeloop.model.catalog.vendors import EXPLICIT_PROVIDERS, PREFERRED_PROVIDERS
from codeloop.model.credentials.environment import find_environment_key
from codeloop.model.errors import NoModel
from codeloop.model.provider import Provider
from codeloop.model.providers import Providers, list_choices

NO_MODEL_MESSAGE = """No model is configured, no key of a provider is set, and no local model server offers one.
Store a key with `codeloop auth login anthropic` (or openai, openrouter, ...), or set one such as ANTHROPIC_API_KEY;
or start a local server (such as Ollama) that has a model, or name one in codeloop.json: {"model": "provider/model"}."""


async def choose_default(providers: Providers, preferred: str | None = None) -> str:
    """Return the default `provider/model`: `preferred`, else the configured one,
    if there is one.

    Otherwise the first that there is: a provider with configured models, a configured key, one
    in the environment, a stored one, a configured address without a key, a local server that
    answers. Raises `NoModel` when there is none of these, `UnknownModel` when the preferred or
    configured model does not exist.
    """
    if preferred or providers.config.model:
        return providers.find_model(preferred or providers.config.model or "").ref
    # Configured models come first: a key in the environment may be there for other programs.
    by_source: dict[str, list[Provider]] = {}
    for usable in providers.list_usable():
        by_source.setdefault(usable.key_source, []).append(usable.provider)
    configured = [
        provider
        for source in ("configuration", "none", "environment", "credentials")
        for provider in by_source.get(source, [])
        if provider.config.models
    ]
    for provider in (*configured, *_sort_by_preference(by_source)):
        model = choose_default_model(
            (list_choices(providers, provider.id) or providers.list_models(provider.id)).values()
        )
        if model is not None:
            return model.ref
    return await _find_local_model(providers)


async def _find_local_model(providers: Providers) -> str:
    for discovered in await providers.discover_local_servers():
        model = choose_local_model(discovered.models)
        if model is not None:
            return f"{discovered.server.id}/{model}"
    raise NoModel(_describe_unsupported_keys(providers) + NO_MODEL_MESSAGE)


def _describe_unsupported_keys(providers: Providers) -> str:
    """Return a line for every key of the environment whose provider's
    protocol is not supported.
    """
    lines = ""
    for provider in providers.list_enabled():
        key = find_environment_key(provider.env, providers.environment)
        if (
            key is not None
            and provider.id not in EXPLICIT_PROVIDERS
            and providers.is_unsupported(provider)
        ):
            lines += f"{key.variable} is set, but codeloop does not speak the protocol of {provider.name} yet.\n"
    return lines


def _sort_by_preference(by_source: Mapping[str, list[Provider]]) -> list[Provider]:
    # `none` comes last here: a configured address without a key may want one.
    ranks = {provider_id: rank for rank, provider_id in enumerate(PREFERRED_PROVIDERS)}
    providers: list[Provider] = []
    for source in ("configuration", "environment", "credentials", "none"):
        group = [
            provider
            for provider in by_source.get(source, [])
            if source != "environment" or provider.id not in EXPLICIT_PROVIDERS
        ]
        providers += sorted(group, key=lambda provider: ranks.get(provider.id, len(ranks)))
    return providers
