"""Which search service is used, and the tools that it gives."""

from collections.abc import Mapping

from msgspec import Struct

from codeloop.schema.config import SearchConfig
from codeloop.tool.builtin.web.websearch import codesearch, websearch
from codeloop.tool.tool import Tool
from codeloop.tool.web import exa, json_search
from codeloop.tool.web.search_service import Search, SearchService


class SearchProvider(Struct, frozen=True):
    """A search service. `keys` and `addresses`: variables with its key and its base URL, the first that is set counts.

    `base_url` is empty where everybody has a server of their own.
    """

    id: str
    name: str
    base_url: str
    search: Search
    keys: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    needs_key: bool = True
    code: Search | None = None


PROVIDERS = (
    SearchProvider("tavily", "Tavily", "https://api.tavily.com", json_search.tavily, keys=("TAVILY_API_KEY",)),
    SearchProvider(
        "brave",
        "Brave Search",
        "https://api.search.brave.com/res/v1",
        json_search.brave,
        keys=("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
    ),
    SearchProvider(
        "exa", "Exa", "https://mcp.exa.ai/mcp", exa.search, keys=("EXA_API_KEY",), needs_key=False, code=exa.code
    ),
    SearchProvider(
        "searxng", "SearXNG", "", json_search.searxng, addresses=("SEARXNG_URL", "SEARXNG_BASE_URL"), needs_key=False
    ),
)
"""In the order in which variables of the environment choose one."""


SEARCH_KEYS = tuple(name for provider in PROVIDERS for name in provider.keys)
"""Variables that child processes never get."""


def search_tools(settings: SearchConfig | None, environment: Mapping[str, str]) -> tuple[Tool, ...]:
    """Return the search tools of the service that was chosen, none when none was.

    It is chosen by `settings`, else by a key or an address in the environment. A service without a key (Exa's) is only
    used when the settings name it: no query leaves the machine that nobody wanted to. A service that lacks its key or
    its address gives a tool whose calls say so.
    """
    provider = _chosen(settings, environment)
    if provider is None:
        return ()
    service = _configured(provider, settings, environment)
    return (websearch(service), *([codesearch(service, service.code)] if service.code is not None else []))


def _chosen(settings: SearchConfig | None, environment: Mapping[str, str]) -> SearchProvider | None:
    if settings is not None:
        return next((row for row in PROVIDERS if row.id == settings.provider), None)
    return next((row for row in PROVIDERS if any(environment.get(name) for name in row.keys + row.addresses)), None)


def _configured(
    provider: SearchProvider, settings: SearchConfig | None, environment: Mapping[str, str]
) -> SearchService:
    configured = settings.base_url if settings else None
    base_url = configured or _first(provider.addresses, environment) or provider.base_url
    key = settings.api_key if settings else None
    # A key of the environment belongs to the service's own origin; another address must name its key beside it.
    if key is None and (configured is None or configured.rstrip("/") == provider.base_url):
        key = _first(provider.keys, environment)
    fault = ""
    if not base_url:
        fault = (
            f"{provider.name} needs its address: set search.baseURL in the configuration, or {provider.addresses[0]}."
        )
    elif provider.needs_key and not key:
        fault = f"{provider.name} needs a key: set search.apiKey in the configuration, or {provider.keys[0]}."
    return SearchService(
        provider.id, provider.name, base_url, provider.search, provider.code, key or "", environment, fault
    )


def _first(names: tuple[str, ...], environment: Mapping[str, str]) -> str:
    return next((environment[name].strip() for name in names if environment.get(name)), "")
