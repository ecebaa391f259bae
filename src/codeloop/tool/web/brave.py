"""Searches by Brave."""

import re

import msgspec

from codeloop.schema.limits import WEBSEARCH_QUERY
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.service import Call, Found, Hit, Service, called_json, rendered

QUERY = min(400, WEBSEARCH_QUERY.value)
"""Characters of a query; Brave refuses longer ones."""


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    description: str | None = None
    extra_snippets: list[str] | None = None
    age: str | None = None


class _Web(msgspec.Struct):
    results: list[_Result] = []


class _Answer(msgspec.Struct):
    web: _Web | None = None


async def search(service: Service, query: str, count: int) -> Found:
    """Search the web."""
    if len(query) > QUERY:
        raise ToolFailure(f"{service.name} takes queries of at most {QUERY} characters; shorten it.")
    call = Call(
        "GET",
        "/web/search",
        query={"q": query, "count": str(count), "text_decorations": "false"},
        headers={"X-Subscription-Token": service.key},
    )
    given = await called_json(service, call)
    try:
        answer = msgspec.convert(given, _Answer)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"{service.name} answered in an unknown form: {error}.") from None
    results = answer.web.results if answer.web else []
    return rendered([Hit(r.url, _plain(r.title), _text(r), r.age or "") for r in results[:count]])


def _text(result: _Result) -> str:
    return " ".join(_plain(text) for text in (result.description, *(result.extra_snippets or ())))


def _plain(text: str | None) -> str:
    """Return a text without the marks and escapes of HTML that Brave leaves in it."""
    import html

    return html.unescape(re.sub(r"</?(strong|b|em|i)>", "", text or ""))
