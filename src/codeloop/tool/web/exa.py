"""Searches by Exa's hosted MCP server: JSON-RPC over streamable HTTP, answered as JSON or as server-sent events."""

import re
from typing import Any

import msgspec

from codeloop import __version__
from codeloop.net.sse import EventTooLong, SseParser
from codeloop.schema.limits import WEBSEARCH_BYTES
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.search_service import SearchRequest, SearchResponse, SearchResults, SearchService, mask_key, send

PROTOCOL = "2025-06-18"


class _Fault(msgspec.Struct):
    message: str = ""


class _Message(msgspec.Struct):
    """A message of JSON-RPC; notifications and the server's own requests have no result."""

    id: int | str | None = None
    result: JSON | None = None
    error: _Fault | None = None


class _Content(msgspec.Struct):
    type: str
    text: str = ""


class _Result(msgspec.Struct):
    content: list[_Content] = []
    failed: bool = msgspec.field(default=False, name="isError")


async def search(service: SearchService, query: str, count: int) -> SearchResults:
    """Search the web; at most `count` results."""
    return await _call(service, "web_search_exa", {"query": query, "numResults": count})


async def code(service: SearchService, query: str, tokens: int) -> SearchResults:
    """Search documentation and code; about `tokens` tokens of text."""
    return await _call(service, "get_code_context_exa", {"query": query, "tokensNum": tokens})


async def _call(service: SearchService, name: str, arguments: JSON) -> SearchResults:
    client = {"name": "codeloop", "version": __version__}
    initialize_result, session = await _request(
        service, 1, "initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}, {}
    )
    headers = {"MCP-Protocol-Version": str(initialize_result.get("protocolVersion") or PROTOCOL)}
    headers |= {"Mcp-Session-Id": session} if session else {}
    try:
        async with send(service, _post(service, {"method": "notifications/initialized"}, headers)):
            pass
        answer, _ = await _request(service, 2, "tools/call", {"name": name, "arguments": arguments}, headers)
    finally:
        if session:
            await _end_session(service, headers)
    try:
        result = msgspec.convert(answer, _Result)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"{service.name} sent a response of an unknown form: {error}.") from None
    text = "\n\n".join(part.text for part in result.content if part.type == "text").strip()
    if result.failed:
        raise ToolFailure(f"{service.name} could not search: {mask_key(service, text)[:500] or 'no reason given'}")
    return SearchResults(text, len(re.findall(r"^URL: ", text, re.MULTILINE)) or bool(text))


async def _end_session(service: SearchService, headers: dict[str, str]) -> None:
    """End the server's session; a server that refuses this is ignored."""
    try:
        async with send(service, SearchRequest("DELETE", headers={**_key(service), **headers})):
            pass
    except ToolFailure:
        return


async def _request(
    service: SearchService, request_id: int, method: str, params: JSON, headers: dict[str, str]
) -> tuple[JSON, str]:
    """Send a request; return its result and the session that the server opened (empty: none). Raises ToolFailure."""
    call = _post(service, {"id": request_id, "method": method, "params": params}, headers)
    async with send(service, call) as response:
        message = await _find_answer(service, response, request_id)
        session = response.headers.get("mcp-session-id", "")
    if message.error is not None:
        why = mask_key(service, message.error.message)[:500]
        raise ToolFailure(f"{service.name} refused {method}: {why or 'no reason given'}")
    return message.result or {}, session


def _post(service: SearchService, message: dict[str, Any], headers: dict[str, str]) -> SearchRequest:
    accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return SearchRequest("POST", headers={**accepted, **_key(service), **headers}, body={"jsonrpc": "2.0", **message})


def _key(service: SearchService) -> dict[str, str]:
    return {"x-api-key": service.key} if service.key else {}


async def _find_answer(service: SearchService, response: SearchResponse, request_id: int) -> _Message:
    """Return the message that answers a request; other messages are skipped. Raises ToolFailure."""
    try:
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            return msgspec.json.decode(await response.whole(), type=_Message)
        parser, size = SseParser(WEBSEARCH_BYTES.value), 0
        async for chunk in response.chunks:
            size += len(chunk)
            if size > WEBSEARCH_BYTES.value:
                raise EventTooLong
            for data in parser.feed(chunk):
                message = msgspec.json.decode(data, type=_Message) if data.strip() else _Message()
                if message.id == request_id and (message.result is not None or message.error is not None):
                    return message
    except msgspec.DecodeError:
        raise ToolFailure(f"{service.name} sent a response that is not JSON-RPC.") from None
    except EventTooLong:
        raise ToolFailure(f"{service.name} sent more than {WEBSEARCH_BYTES.value:,} bytes.") from None
    raise ToolFailure(f"{service.name} ended without a response.", advice="Try again.")
