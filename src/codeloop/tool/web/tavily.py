"""Searches by Tavily."""

import msgspec

from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.service import Call, Found, Hit, Service, called_json, rendered


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    published_date: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result] = []


async def search(service: Service, query: str, count: int) -> Found:
    """Search the web."""
    body = {"query": query, "max_results": count, "search_depth": "basic"}
    call = Call("POST", "/search", headers=_headers(service), body=body)
    given = await called_json(service, call)
    try:
        answer = msgspec.convert(given, _Answer)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"{service.name} answered in an unknown form: {error}.") from None
    return rendered(
        [Hit(r.url, r.title or "", r.content or "", r.published_date or "") for r in answer.results[:count]]
    )


def _headers(service: Service) -> dict[str, str]:
    return {"Content-Type": "application/json", "Authorization": f"Bearer {service.key}"}
