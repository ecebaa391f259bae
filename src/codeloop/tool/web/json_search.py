"""Search services with a plain JSON API: Tavily, Brave and SearXNG."""

import re

import msgspec

from codeloop.schema.limits import WEBSEARCH_QUERY
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.search_service import Hit, SearchRequest, SearchResults, SearchService, format_hits, send_for

BRAVE_QUERY = min(400, WEBSEARCH_QUERY.value)
"""Characters of a query; Brave refuses longer ones."""


class _Result(msgspec.Struct):
    """A result of Tavily or SearXNG, which name the date differently."""

    url: str
    title: str | None = None
    content: str | None = None
    published_date: str | None = None
    published: str | None = msgspec.field(default=None, name="publishedDate")


class _Answer(msgspec.Struct):
    results: list[_Result] = []


class _BraveResult(msgspec.Struct):
    url: str
    title: str | None = None
    description: str | None = None
    extra_snippets: list[str] | None = None
    age: str | None = None


class _BraveWeb(msgspec.Struct):
    results: list[_BraveResult] = []


class _BraveAnswer(msgspec.Struct):
    web: _BraveWeb | None = None


async def tavily(service: SearchService, query: str, count: int) -> SearchResults:
    """Search by Tavily."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {service.key}"}
    body = {"query": query, "max_results": count, "search_depth": "basic"}
    return _format_answer(
        await send_for(service, SearchRequest("POST", "/search", headers=headers, body=body), _Answer), count
    )


async def searxng(service: SearchService, query: str, count: int) -> SearchResults:
    """Search by a SearXNG server, which must have the format `json` switched on."""
    headers = {"Authorization": f"Bearer {service.key}"} if service.key else {}
    request = SearchRequest("GET", "/search", query={"q": query, "format": "json"}, headers=headers)
    try:
        return _format_answer(await send_for(service, request, _Answer), count)
    except ToolFailure as error:
        if " 403 " not in str(error):
            raise
        why = "its settings.yml must list `json` under search.formats"
        raise ToolFailure(f"{service.name} refuses to answer in JSON: {why}.") from None


async def brave(service: SearchService, query: str, count: int) -> SearchResults:
    """Search by Brave."""
    if len(query) > BRAVE_QUERY:
        raise ToolFailure(f"{service.name} takes queries of at most {BRAVE_QUERY} characters.", advice="Shorten it.")
    parameters = {"q": query, "count": str(count), "text_decorations": "false"}
    headers = {"X-Subscription-Token": service.key}
    answer = await send_for(service, SearchRequest("GET", "/web/search", parameters, headers), _BraveAnswer)
    results = answer.web.results if answer.web else []
    return format_hits([Hit(r.url, _plain(r.title), _excerpt(r), r.age or "") for r in results[:count]])


def _format_answer(answer: _Answer, count: int) -> SearchResults:
    return format_hits(
        [
            Hit(r.url, r.title or "", r.content or "", r.published_date or r.published or "")
            for r in answer.results[:count]
        ]
    )


def _excerpt(result: _BraveResult) -> str:
    return " ".join(_plain(text) for text in (result.description, *(result.extra_snippets or ())))


def _plain(text: str | None) -> str:
    """Return a text without the HTML tags and entities that Brave leaves in it."""
    import html

    return html.unescape(re.sub(r"</?(strong|b|em|i)>", "", text or ""))
