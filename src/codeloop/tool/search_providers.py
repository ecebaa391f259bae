"""The table of search services for the tools `websearch` and `codesearch`, and the choice of one.

Every run reads the table, to know which tools there are; `tool/web` is loaded when a tool is used.
"""

from collections.abc import Mapping

from msgspec import Struct

from codeloop.schema.config import SearchConfig

ENABLE_EXA = "OPENCODE_ENABLE_EXA"


class SearchProvider(Struct, frozen=True):
    """A search service. `key_variables`, `address_variables`: environment variables;
    the first that is set counts.

    `base_url`: empty if everybody runs a server of their own. `search_target`,
    `code_search_target`: its functions, as `room.module:name`, which are imported when they are
    used; the second is empty if the service can't search code.
    """

    id: str
    name: str
    base_url: str
    search_target: str
    key_variables: tuple[str, ...] = ()
    address_variables: tuple[str, ...] = ()
    needs_key: bool = True
    code_search_target: str = ""


PROVIDERS = (
    SearchProvider(
        "tavily",
        "Tavily",
        "https://api.tavily.com",
        "tool.web.json_search:search_tavily",
        key_variables=("TAVILY_API_KEY",),
    ),
    SearchProvider(
        "brave",
        "Brave Search",
        "https://api.search.brave.com/res/v1",
        "tool.web.json_search:search_brave",
        key_variables=("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
    ),
    SearchProvider(
        "exa",
        "Exa",
        "https://mcp.exa.ai/mcp",
        "tool.web.exa:search_web",
        key_variables=("EXA_API_KEY",),
        needs_key=False,
        code_search_target="tool.web.exa:search_code",
    ),
    SearchProvider(
        "searxng",
        "SearXNG",
        "",
        "tool.web.json_search:search_searxng",
        address_variables=("SEARXNG_URL", "SEARXNG_BASE_URL"),
        needs_key=False,
    ),
)
"""The search services, in the order in which their environment variables are tried."""

SEARCH_KEY_VARIABLES = tuple(name for provider in PROVIDERS for name in provider.key_variables)
"""The variables with keys, which child processes never get."""


def is_switched_on(environment: Mapping[str, str], name: str) -> bool:
    """Return whether a variable of OpenCode that is a switch is on."""
    return environment.get(name, "").lower() in {"1", "true"}


def choose_provider(
    settings: SearchConfig | None, environment: Mapping[str, str]
) -> SearchProvider | None:
    """Return the service that `settings` name, else the first with a key or an address
    in the environment, or None.

    A service that needs no key (Exa) is only used if the settings name it, or OpenCode's variable
    ENABLE_EXA is set, so that no query leaves the machine unintended.
    """
    if settings is not None and settings.provider is not None:
        return next((provider for provider in PROVIDERS if provider.id == settings.provider), None)
    for provider in PROVIDERS:
        if any(
            environment.get(name) for name in (*provider.key_variables, *provider.address_variables)
        ):
            return provider
    if is_switched_on(environment, ENABLE_EXA):
        return next(provider for provider in PROVIDERS if provider.id == "exa")
    return None
