"""A chosen search service as the tools use it."""

import asyncio

from msgspec import Struct

from codeloop.schema.limits import WEBSEARCH_QUERY, WEBSEARCH_TIME
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.service import Found, Search, Service


class Engine(Struct, frozen=True):
    """`fault`: why it can't be used, empty when it can. `code` is None where a service has no search for code."""

    provider: str
    service: Service
    search: Search
    code: Search | None = None
    fault: str = ""


async def ask_engine(engine: Engine, search: Search, query: str, amount: int) -> Found:
    """Search within `web.search_time`. Raises ToolFailure."""
    if engine.fault:
        raise ToolFailure(engine.fault)
    try:
        async with asyncio.timeout(WEBSEARCH_TIME.seconds):
            return await search(engine.service, query, amount)
    except TimeoutError:
        raise ToolFailure(
            f"{engine.service.name} gave no answer within {WEBSEARCH_TIME.value // 1000} s. Try again later."
        ) from None


def checked_query(query: str) -> str:
    """Return a query without blanks around it. Raises ToolFailure for one that is empty or too long."""
    text = query.strip()
    if not text:
        raise ToolFailure("The query is empty; say what to search for.")
    if len(text) > WEBSEARCH_QUERY.value:
        raise ToolFailure(f"The query is longer than {WEBSEARCH_QUERY.value} characters; shorten it.")
    return text
