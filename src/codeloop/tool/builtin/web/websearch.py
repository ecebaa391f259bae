"""The tools `websearch` and `codesearch`, made for the search services that
the user has configured.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from codeloop.kit.lazy import load_object
from codeloop.model.base_url import redact_url
from codeloop.model.key_origins import refuse_foreign_address
from codeloop.schema.config import SearchConfig
from codeloop.schema.permission import Need
from codeloop.schema.provider_config import OwnEntry
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.tool.search_providers import PROVIDERS, SearchProvider
from codeloop.tool.tool import (
    CONCURRENT_TRAITS,
    Tool,
    ToolContext,
    ToolResult,
    read_description,
    tool,
)
from codeloop.tool.web.search_service import SearchFunction, SearchService, check_query


class WebsearchParams(Wire):
    """Arguments of the tool `websearch`."""

    query: Annotated[str, Meta(min_length=1)]
    num_results: Annotated[int, Meta(ge=1, le=20, description="default 8")] = 8


class CodesearchParams(Wire):
    """Arguments of the tool `codesearch`."""

    query: Annotated[str, Meta(min_length=1)]
    tokens: Annotated[
        int, Meta(ge=1_000, le=50_000, description="length of the answer, default 5000")
    ] = 5_000


class PublicCodeParams(Wire):
    """Arguments of the tool `codesearch` of a service that searches as grep does."""

    query: Annotated[
        str, Meta(min_length=1, description="code as it is written, such as `useState(`")
    ]
    is_regexp: Annotated[bool, Meta(description="query is a regular expression")] = False
    repository: Annotated[str, Meta(description="owner/name, or a part of it")] | None = None
    path: Annotated[str, Meta(description="a part of the file's path")] | None = None
    language: Annotated[str, Meta(description="such as Python or TypeScript")] | None = None


def make_websearch(service: SearchService) -> Tool:
    """Return the tool `websearch` for a search service."""

    @tool("websearch", params=WebsearchParams, traits=CONCURRENT_TRAITS)
    async def run(params: WebsearchParams, ctx: ToolContext) -> ToolResult:
        query = check_query(params.query)
        arguments: JSON = {
            "query": query,
            "numResults": params.num_results,
            "provider": service.provider,
        }
        await ctx.ask(
            Need(permission="websearch", patterns=(query,), always=("*",), metadata=arguments)
        )
        result = await service.run_search(service.search, query, params.num_results)
        metadata: JSON = {"provider": service.provider, "results": result.count, "truncated": False}
        return ToolResult(query, result.text or "No results. Try other words.", metadata)

    return run


def make_codesearch(service: SearchService, search_code: SearchFunction) -> Tool:
    """Return the tool `codesearch` for a service that searches for code by the
    function `search_code`.

    Permission rules treat it as `websearch`.
    """

    @tool(
        "codesearch",
        params=CodesearchParams,
        traits=replace(CONCURRENT_TRAITS, permission="websearch"),
    )
    async def run(params: CodesearchParams, ctx: ToolContext) -> ToolResult:
        query = check_query(params.query)
        arguments: JSON = {"query": query, "tokens": params.tokens, "provider": service.provider}
        await ctx.ask(
            Need(permission="websearch", patterns=(query,), always=("*",), metadata=arguments)
        )
        result = await service.run_search(search_code, query, params.tokens)
        metadata: JSON = {"provider": service.provider, "truncated": False}
        return ToolResult(
            query,
            result.text or "Nothing was found. Name the library and what it should do.",
            metadata,
        )

    return run


def make_public_code_search(url: str | None, environment: Mapping[str, str]) -> Tool:
    """Return the tool `codesearch` for grep.app,
    which searches public repositories and needs no key.

    `url`: another address of the service. Permission rules treat it as `websearch`.
    """
    from codeloop.tool.web.grep_app import PUBLIC_URL, search_public_code

    @tool(
        "codesearch",
        params=PublicCodeParams,
        traits=replace(CONCURRENT_TRAITS, permission="websearch"),
        description=read_description(Path(__file__).parent, "publiccode"),
    )
    async def run(params: PublicCodeParams, ctx: ToolContext) -> ToolResult:
        query = check_query(params.query)
        filters: JSON = {"repo": params.repository, "path": params.path}
        filters = {name: value for name, value in filters.items() if value}
        filters |= {"language": [params.language]} if params.language else {}
        filters |= {"useRegexp": True} if params.is_regexp else {}
        metadata: JSON = {"query": query, "provider": "grep_app", **filters}
        await ctx.ask(
            Need(permission="websearch", patterns=(query,), always=("*",), metadata=metadata)
        )
        search = partial(search_public_code, filters=filters)
        service = SearchService(
            "grep_app", "grep.app", url or PUBLIC_URL, search, environment=environment
        )
        result = await service.run_search(search, query, 0)
        report: JSON = {"provider": "grep_app", "results": result.count, "truncated": False}
        return ToolResult(
            query, result.text or "Nothing was found. Give a shorter piece of code.", report
        )

    return run


def make_search_tools(
    provider: SearchProvider,
    settings: SearchConfig | None,
    environment: Mapping[str, str],
    own_entry: OwnEntry | None = None,
) -> tuple[Tool, ...]:
    """Return the tools of a search service. If its key or address is missing,
    their calls report that.

    `own_entry`: the user's part of `settings`; a key of the user is not sent to an
    address that is not theirs.
    """
    service = configure_service(provider, settings, environment, own_entry)
    websearch = make_websearch(service)
    return (
        (websearch,)
        if service.search_code is None
        else (websearch, make_codesearch(service, service.search_code))
    )


def configure_service(
    provider: SearchProvider,
    settings: SearchConfig | None,
    environment: Mapping[str, str],
    own_entry: OwnEntry | None,
) -> SearchService:
    """Return a search service as it is configured; `fault` says what is missing."""
    configured = settings.base_url if settings else None
    base_url = (
        configured or _find_variable(provider.address_variables, environment) or provider.base_url
    )
    key = settings.api_key if settings else None
    # An environment's key belongs to the service's own origin;
    # another address needs its own key in the settings.
    if key is None and (configured is None or configured.rstrip("/") == provider.base_url):
        key = _find_variable(provider.key_variables, environment)
    fault = ""
    if not base_url:
        variable = provider.address_variables[0]
        fault = f"{provider.name} needs its address: set search.baseURL in the configuration, or {variable}."
    elif provider.needs_key and not key:
        fault = f"{provider.name} needs a key: set search.apiKey in the configuration, or {provider.key_variables[0]}."
    elif own_entry is not None:
        fault = _refuse_address(provider, base_url, own_entry)
    search: SearchFunction = load_object(provider.search_target)
    search_code: SearchFunction | None = None
    if provider.code_search_target:
        search_code = load_object(provider.code_search_target)
    return SearchService(
        provider=provider.id,
        name=provider.name,
        base_url=base_url,
        search=search,
        search_code=search_code,
        key=key or "",
        environment=environment,
        fault=fault,
    )


def _refuse_address(provider: SearchProvider, url: str, own_entry: OwnEntry) -> str:
    """Return why the key is not sent to the address of a project;
    "": the address is one of the user's.
    """
    own_id, own_url = (own_entry.values.get(name) for name in ("provider", "baseURL"))
    own_urls = (
        [own_url]
        if own_url
        else [each.base_url for each in PROVIDERS if each.id == own_id and each.base_url]
    )
    if own_entry.is_borrowed and provider.base_url:
        own_urls.append(provider.base_url)
    setting = f'{{"search": {{"provider": "{provider.id}", "baseURL": "{redact_url(url)}"}}}}'
    return refuse_foreign_address(f"Your `{own_entry.secret}` in search", url, own_urls, setting)


def _find_variable(names: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """Return the value of the first of these variables that is set; "": none is."""
    return next((environment[name].strip() for name in names if environment.get(name)), "")
