"""Searches with Exa, through its hosted MCP server: JSON-RPC over HTTP,
answered as JSON or as server-sent events.
"""

import re
from typing import Any

import msgspec

from codeloop import __version__
from codeloop.net.sse import EventTooLong, SseParser
from codeloop.schema.limits import WEBSEARCH_BYTES
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.search_service import (
    SearchRequest,
    SearchResponse,
    SearchResults,
    SearchService,
    mask_key,
    send_request,
)

PROTOCOL_VERSION = "2025-06-18"


class _RpcError(msgspec.Struct):
    message: str = ""


class _RpcMessage(msgspec.Struct):
    """A JSON-RPC message; notifications and the server's own requests have
    neither result nor error.
    """

    id: int | str | None = None
    result: JSON | None = None
    error: _RpcError | None = None


class _ContentPart(msgspec.Struct):
    type: str
    text: str = ""


class _ToolCallResult(msgspec.Struct):
    content: list[_ContentPart] = []
    failed: bool = msgspec.field(default=False, name="isError")


async def search_web(service: SearchService, query: str, count: int) -> SearchResults:
    """Search the web; return at most `count` results. Raises ToolFailure."""
    return await call_tool(service, "web_search_exa", {"query": query, "numResults": count})


async def search_code(service: SearchService, query: str, tokens: int) -> SearchResults:
    """Search documentation and code; return about `tokens` tokens of text. Raises ToolFailure."""
    return await call_tool(service, "get_code_context_exa", {"query": query, "tokensNum": tokens})


async def call_tool(service: SearchService, name: str, arguments: JSON) -> SearchResults:
    """Call a tool of a service that is an MCP server over HTTP, and return its text.
    Raises ToolFailure.
    """
    client = {"name": "codeloop", "version": __version__}
    initialize_result, session = await _send_message(
        service,
        request_id=1,
        method="initialize",
        params={"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client},
        headers={},
    )
    headers = {
        "MCP-Protocol-Version": str(initialize_result.get("protocolVersion") or PROTOCOL_VERSION)
    }
    headers |= {"Mcp-Session-Id": session} if session else {}
    try:
        # MCP requires this notification before any other request.
        async with send_request(
            service, _make_post(service, {"method": "notifications/initialized"}, headers)
        ):
            pass
        answer, _ = await _send_message(
            service,
            request_id=2,
            method="tools/call",
            params={"name": name, "arguments": arguments},
            headers=headers,
        )
    finally:
        if session:
            await _end_session(service, headers)
    try:
        result = msgspec.convert(answer, _ToolCallResult)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"{service.name} sent a response of an unknown form: {error}.") from None
    text = "\n\n".join(part.text for part in result.content if part.type == "text").strip()
    if result.failed:
        raise ToolFailure(
            f"{service.name} could not search: {mask_key(service, text)[:500] or 'no reason given'}"
        )
    # The text has no count; each result of a web search has a line `URL: ...`.
    # Other text counts as one result.
    count = len(re.findall(r"^URL: ", text, re.MULTILINE))
    return SearchResults(text, count=count or (1 if text else 0))


async def _end_session(service: SearchService, headers: dict[str, str]) -> None:
    """End the session on the server; servers may refuse this, which does not matter."""
    try:
        async with send_request(
            service, SearchRequest("DELETE", headers={**_make_key_header(service), **headers})
        ):
            pass
    except ToolFailure:
        return


async def _send_message(
    service: SearchService, *, request_id: int, method: str, params: JSON, headers: dict[str, str]
) -> tuple[JSON, str]:
    """Send a request; return its result, and the id of the session that the
    server opened ("" for none).
    """
    call = _make_post(service, {"id": request_id, "method": method, "params": params}, headers)
    async with send_request(service, call) as response:
        message = await _find_answer(service, response, request_id)
        session = response.headers.get("mcp-session-id", "")
    if message.error is not None:
        why = mask_key(service, message.error.message)[:500]
        raise ToolFailure(f"{service.name} refused {method}: {why or 'no reason given'}")
    return message.result or {}, session


def _make_post(
    service: SearchService, message: dict[str, Any], headers: dict[str, str]
) -> SearchRequest:
    accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return SearchRequest(
        "POST",
        headers={**accepted, **_make_key_header(service), **headers},
        body={"jsonrpc": "2.0", **message},
    )


def _make_key_header(service: SearchService) -> dict[str, str]:
    return {"x-api-key": service.key} if service.key else {}


async def _find_answer(
    service: SearchService, response: SearchResponse, request_id: int
) -> _RpcMessage:
    """Return the message with the result or the error of a request; others are skipped.
    Raises ToolFailure.
    """
    try:
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            return decode_json(await response.read_whole(), _RpcMessage)
        parser, size = SseParser(WEBSEARCH_BYTES.value), 0
        async for chunk in response.chunks:
            size += len(chunk)
            if size > WEBSEARCH_BYTES.value:
                raise EventTooLong
            for data in parser.feed(chunk):
                message = decode_json(data, _RpcMessage) if data.strip() else _RpcMessage()
                if message.id == request_id and (
                    message.result is not None or message.error is not None
                ):
                    return message
    except DECODE_ERRORS:
        raise ToolFailure(f"{service.name} sent a response that is not JSON-RPC.") from None
    except EventTooLong:
        raise ToolFailure(
            f"{service.name} sent more than {WEBSEARCH_BYTES.value:,} bytes."
        ) from None
    raise ToolFailure(f"{service.name} ended without a response.", advice="Try again.")
