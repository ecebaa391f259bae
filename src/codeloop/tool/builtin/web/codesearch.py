"""The tool `codesearch`: documentation and code examples from a search service."""

from typing import Annotated

from msgspec import Meta

from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, Wire, replace
from codeloop.tool.tool import READ_ONLY, Tool, ToolContext, ToolResult, tool
from codeloop.tool.web.engine import Engine, ask_engine, checked_query


class CodesearchParams(Wire):
    """What the model gives."""

    query: Annotated[str, Meta(min_length=1)]
    tokens: Annotated[int, Meta(ge=1_000, le=50_000, description="length of the answer, default 5000")] = 5_000


def codesearch(engine: Engine) -> Tool:
    """Build the tool for a search service that has a search for code. Rules know it as `websearch`."""

    @tool("codesearch", params=CodesearchParams, traits=replace(READ_ONLY, permission="websearch"))
    async def run(params: CodesearchParams, ctx: ToolContext) -> ToolResult:
        query = checked_query(params.query)
        given: JSON = {"query": query, "tokens": params.tokens, "provider": engine.provider}
        await ctx.ask(Need(permission="websearch", patterns=(query,), always=("*",), metadata=given))
        found = await ask_engine(engine, engine.code or engine.search, query, params.tokens)
        metadata: JSON = {"provider": engine.provider, "truncated": False}
        return ToolResult(query, found.text or "Nothing was found. Name the library and what it should do.", metadata)

    return run
