"""The table of search services, and the choice among them."""

from collections.abc import Mapping

from msgspec import Struct

from codeloop.schema.config import SearchConfig


class SearchProvider(Struct, frozen=True):
    """A search service. `keys` and `addresses`: variables with its key and its base URL, the first that is set counts.

    `base_url` is empty where everybody has a server of their own. `search` and `code` say where its functions are
    (`room.module:name`); `code` is empty where it has no search for code.
    """

    id: str
    name: str
    base_url: str
    search: str
    keys: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    needs_key: bool = True
    code: str = ""


PROVIDERS = (
    SearchProvider(
        "tavily", "Tavily", "https://api.tavily.com", "tool.web.json_search:tavily", keys=("TAVILY_API_KEY",)
    ),
    SearchProvider(
        "brave",
        "Brave Search",
        "https://api.search.brave.com/res/v1",
        "tool.web.json_search:brave",
        keys=("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
    ),
    SearchProvider(
        "exa",
        "Exa",
        "https://mcp.exa.ai/mcp",
        "tool.web.exa:search",
        keys=("EXA_API_KEY",),
        needs_key=False,
        code="tool.web.exa:code",
    ),
    SearchProvider(
        "searxng",
        "SearXNG",
        "",
        "tool.web.json_search:searxng",
        addresses=("SEARXNG_URL", "SEARXNG_BASE_URL"),
        needs_key=False,
    ),
)
"""In the order in which the environment's variables are tried."""

SEARCH_KEYS = tuple(name for provider in PROVIDERS for name in provider.keys)
"""Variables that child processes never get."""


def search_provider(settings: SearchConfig | None, environment: Mapping[str, str]) -> SearchProvider | None:
    """Return the service that `settings` name, else the one that has a key or an address in the environment.

    A service without a key (Exa's) is only used when the settings name it: no query leaves the machine
    unintended.
    """
    if settings is not None:
        return next((row for row in PROVIDERS if row.id == settings.provider), None)
    return next((row for row in PROVIDERS if any(environment.get(name) for name in row.keys + row.addresses)), None)
