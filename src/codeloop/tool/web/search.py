"""Which search service is used, and the tools that it gives."""

from collections.abc import Mapping

from msgspec import Struct

from codeloop.schema.config import SearchConfig
from codeloop.tool.builtin.web.codesearch import codesearch
from codeloop.tool.builtin.web.websearch import websearch
from codeloop.tool.tool import Tool
from codeloop.tool.web import brave, exa, keys, searxng, tavily
from codeloop.tool.web.engine import Engine
from codeloop.tool.web.service import Search, Service


class Provider(Struct, frozen=True):
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
    Provider("tavily", "Tavily", "https://api.tavily.com", tavily.search, keys=keys.TAVILY),
    Provider(
        "brave",
        "Brave Search",
        "https://api.search.brave.com/res/v1",
        brave.search,
        keys=keys.BRAVE,
    ),
    Provider(
        "exa",
        "Exa",
        "https://mcp.exa.ai/mcp",
        exa.search,
        keys=keys.EXA,
        needs_key=False,
        code=exa.code,
    ),
    Provider("searxng", "SearXNG", "", searxng.search, addresses=("SEARXNG_URL", "SEARXNG_BASE_URL"), needs_key=False),
)
"""In the order in which variables of the environment choose one."""


def search_tools(settings: SearchConfig | None, environment: Mapping[str, str]) -> tuple[Tool, ...]:
    """Return the search tools of the service that was chosen, none when none was.

    It is chosen by `settings`, else by a key or an address in the environment. A service without a key (Exa's) is only
    used when the settings name it: no query leaves the machine that nobody wanted to. A service that lacks its key or
    its address gives a tool whose calls say so.
    """
    provider = _chosen(settings, environment)
    if provider is None:
        return ()
    engine = _engine(provider, settings, environment)
    tools = (websearch(engine),)
    return (*tools, codesearch(engine)) if engine.code is not None else tools


def _chosen(settings: SearchConfig | None, environment: Mapping[str, str]) -> Provider | None:
    if settings is not None:
        return next((row for row in PROVIDERS if row.id == settings.provider), None)
    return next((row for row in PROVIDERS if any(environment.get(name) for name in row.keys + row.addresses)), None)


def _engine(provider: Provider, settings: SearchConfig | None, environment: Mapping[str, str]) -> Engine:
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
    service = Service(provider.name, base_url, key or "", environment)
    return Engine(provider.id, service, provider.search, provider.code, fault)


def _first(names: tuple[str, ...], environment: Mapping[str, str]) -> str:
    return next((environment[name].strip() for name in names if environment.get(name)), "")
