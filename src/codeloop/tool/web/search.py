"""Builds the tools of the configured search service."""

from collections.abc import Mapping

from codeloop.kit.lazy import load
from codeloop.schema.config import SearchConfig
from codeloop.tool.builtin.web.websearch import codesearch, websearch
from codeloop.tool.tool import Tool
from codeloop.tool.web.providers import SearchProvider
from codeloop.tool.web.search_service import Search, SearchService


def tools_of(
    provider: SearchProvider, settings: SearchConfig | None, environment: Mapping[str, str]
) -> tuple[Tool, ...]:
    """Return the tools of the search service that was chosen.

    One without its key or address yields a tool whose calls report that.
    """
    service = _configure(provider, settings, environment)
    return (websearch(service), *([codesearch(service, service.code)] if service.code is not None else []))


def _configure(
    provider: SearchProvider, settings: SearchConfig | None, environment: Mapping[str, str]
) -> SearchService:
    configured = settings.base_url if settings else None
    base_url = configured or _first(provider.addresses, environment) or provider.base_url
    key = settings.api_key if settings else None
    # An environment's key belongs to the service's own origin; another address needs its own key in the settings.
    if key is None and (configured is None or configured.rstrip("/") == provider.base_url):
        key = _first(provider.keys, environment)
    fault = ""
    if not base_url:
        fault = (
            f"{provider.name} needs its address: set search.baseURL in the configuration, or {provider.addresses[0]}."
        )
    elif provider.needs_key and not key:
        fault = f"{provider.name} needs a key: set search.apiKey in the configuration, or {provider.keys[0]}."
    search: Search = load(provider.search)
    code: Search | None = load(provider.code) if provider.code else None
    return SearchService(provider.id, provider.name, base_url, search, code, key or "", environment, fault)


def _first(names: tuple[str, ...], environment: Mapping[str, str]) -> str:
    return next((environment[name].strip() for name in names if environment.get(name)), "")
