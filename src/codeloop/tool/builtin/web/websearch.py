"""The tool `websearch`: results of a search service."""

from typing import Annotated

from msgspec import Meta

from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, Wire
from codeloop.tool.tool import READ_ONLY, Tool, ToolContext, ToolResult, tool
from codeloop.tool.web.engine import Engine, ask_engine, checked_query


class WebsearchParams(Wire):
    """What the model gives."""

    query: Annotated[str, Meta(min_length=1)]
    num_results: Annotated[int, Meta(ge=1, le=20, description="default 8")] = 8


def websearch(engine: Engine) -> Tool:
    """Build the tool for a search service."""

    @tool("websearch", params=WebsearchParams, traits=READ_ONLY)
    async def run(params: WebsearchParams, ctx: ToolContext) -> ToolResult:
        query = checked_query(params.query)
        given: JSON = {"query": query, "numResults": params.num_results, "provider": engine.provider}
        await ctx.ask(Need(permission="websearch", patterns=(query,), always=("*",), metadata=given))
        found = await ask_engine(engine, engine.search, query, params.num_results)
        metadata: JSON = {"provider": engine.provider, "results": found.results, "truncated": False}
        return ToolResult(query, found.text or "No results. Try other words.", metadata)

    return run
