"""Searches with Tavily, Brave and SearXNG, by their JSON APIs;
`tool/search_providers.py` names these functions.
"""

import re

import msgspec

from codeloop.schema.limits import WEBSEARCH_QUERY
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.search_service import (
    Hit,
    SearchRequest,
    SearchResults,
    SearchService,
    fetch_json,
    format_hits,
)

# Brave refuses longer queries.
MAX_BRAVE_QUERY_CHARS = min(400, WEBSEARCH_QUERY.value)


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


async def search_tavily(service: SearchService, query: str, count: int) -> SearchResults:
    """Search with Tavily; return at most `count` results. Raises ToolFailure."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {service.key}"}
    body = {"query": query, "max_results": count, "search_depth": "basic"}
    return _format_answer(
        await fetch_json(
            service, SearchRequest("POST", "/search", headers=headers, body=body), _Answer
        ),
        count,
    )


async def search_searxng(service: SearchService, query: str, count: int) -> SearchResults:
    """Search with a SearXNG server, which must have the format `json` enabled.
    Raises ToolFailure.
    """
    headers = {"Authorization": f"Bearer {service.key}"} if service.key else {}
    request = SearchRequest("GET", "/search", query={"q": query, "format": "json"}, headers=headers)
    try:
        return _format_answer(await fetch_json(service, request, _Answer), count)
    except ToolFailure as error:
        # SearXNG answers 403 to a format that its settings do not list.
        if " 403 " not in str(error):
            raise
        why = "its settings.yml must list `json` under search.formats"
        raise ToolFailure(f"{service.name} refuses to answer in JSON: {why}.") from None


async def search_brave(service: SearchService, query: str, count: int) -> SearchResults:
    """Search with Brave; return at most `count` results. Raises ToolFailure."""
    if len(query) > MAX_BRAVE_QUERY_CHARS:
        raise ToolFailure(
            f"{service.name} takes queries of at most {MAX_BRAVE_QUERY_CHARS} characters.",
            advice="Shorten it.",
        )
    parameters = {"q": query, "count": str(count), "text_decorations": "false"}
    headers = {"X-Subscription-Token": service.key}
    request = SearchRequest("GET", "/web/search", query=parameters, headers=headers)
    answer = await fetch_json(service, request, _BraveAnswer)
    results = answer.web.results if answer.web else []
    return format_hits(
        [
            Hit(
                each.url,
                title=_strip_html(each.title),
                text=_join_excerpts(each),
                date=each.age or "",
            )
            for each in results[:count]
        ]
    )


def _format_answer(answer: _Answer, count: int) -> SearchResults:
    return format_hits(
        [
            Hit(
                each.url,
                title=each.title or "",
                text=each.content or "",
                date=each.published_date or each.published or "",
            )
            for each in answer.results[:count]
        ]
    )


def _join_excerpts(result: _BraveResult) -> str:
    return " ".join(
        _strip_html(text) for text in (result.description, *(result.extra_snippets or ()))
    )


def _strip_html(text: str | None) -> str:
    """Return a text without HTML tags and entities, which Brave's results contain."""
    import html

    return html.unescape(re.sub(r"</?(strong|b|em|i)>", "", text or ""))
