"""The tools `websearch` and `codesearch`: results of a search service, documentation and code examples."""

from typing import Annotated

from msgspec import Meta

from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.tool.tool import READ_ONLY, Tool, ToolContext, ToolResult, tool
from codeloop.tool.web.search_service import Search, SearchService, check_query


class WebsearchParams(Wire):
    """Arguments of the tool `websearch`."""

    query: Annotated[str, Meta(min_length=1)]
    num_results: Annotated[int, Meta(ge=1, le=20, description="default 8")] = 8


class CodesearchParams(Wire):
    """Arguments of the tool `codesearch`."""

    query: Annotated[str, Meta(min_length=1)]
    tokens: Annotated[int, Meta(ge=1_000, le=50_000, description="length of the answer, default 5000")] = 5_000


def websearch(service: SearchService) -> Tool:
    """Return the tool `websearch` for a search service."""

    @tool("websearch", params=WebsearchParams, traits=READ_ONLY)
    async def run(params: WebsearchParams, ctx: ToolContext) -> ToolResult:
        query = check_query(params.query)
        arguments: JSON = {"query": query, "numResults": params.num_results, "provider": service.provider}
        await ctx.ask(Need(permission="websearch", patterns=(query,), always=("*",), metadata=arguments))
        result = await service.results(service.search, query, params.num_results)
        metadata: JSON = {"provider": service.provider, "results": result.count, "truncated": False}
        return ToolResult(query, result.text or "No results. Try other words.", metadata)

    return run


def codesearch(service: SearchService, code: Search) -> Tool:
    """Return the tool `codesearch` for a service that searches for code by `code`.

    Permission rules treat it as `websearch`.
    """

    @tool("codesearch", params=CodesearchParams, traits=replace(READ_ONLY, permission="websearch"))
    async def run(params: CodesearchParams, ctx: ToolContext) -> ToolResult:
        query = check_query(params.query)
        arguments: JSON = {"query": query, "tokens": params.tokens, "provider": service.provider}
        await ctx.ask(Need(permission="websearch", patterns=(query,), always=("*",), metadata=arguments))
        result = await service.results(code, query, params.tokens)
        metadata: JSON = {"provider": service.provider, "truncated": False}
        return ToolResult(query, result.text or "Nothing was found. Name the library and what it should do.", metadata)

    return run
