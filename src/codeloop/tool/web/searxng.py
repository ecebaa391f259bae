"""Searches by a SearXNG server, which must have the format `json` switched on."""

import msgspec

from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.service import Call, Found, Hit, Service, called_json, rendered


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    published: str | None = msgspec.field(default=None, name="publishedDate")


class _Answer(msgspec.Struct):
    results: list[_Result] = []


async def search(service: Service, query: str, count: int) -> Found:
    """Search the web."""
    headers = {"Authorization": f"Bearer {service.key}"} if service.key else {}
    call = Call("GET", "/search", query={"q": query, "format": "json"}, headers=headers)
    try:
        given = await called_json(service, call)
    except ToolFailure as error:
        if " 403 " not in str(error):
            raise
        why = "its settings.yml must list `json` under search.formats"
        raise ToolFailure(f"{service.name} refuses to answer in JSON: {why}.") from None
    try:
        answer = msgspec.convert(given, _Answer)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"{service.name} answered in an unknown form: {error}.") from None
    return rendered([Hit(r.url, r.title or "", r.content or "", r.published or "") for r in answer.results[:count]])
