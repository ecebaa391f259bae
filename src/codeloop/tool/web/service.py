"""One search service and how it is called: JSON over HTTPS, the key to its own origin only, no redirects."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop import __version__
from codeloop.net.origin import is_loopback
from codeloop.net.tls import tls_context
from codeloop.schema.limits import WEB_CONNECT, WEB_ERROR, WEBSEARCH_BYTES, WEBSEARCH_SNIPPET, WEBSEARCH_TIME
from codeloop.schema.wire import JSON
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.address import WebUrl, parse
from codeloop.tool.web.body import ENCODINGS, read_body

HINTS = {
    401: "The key is refused.",
    403: "The key is refused, or lacks the right to search.",
    404: "Is the base URL right?",
    429: "Too many searches; wait, or use a key with a higher limit.",
}


@dataclass(frozen=True, slots=True)
class Service:
    """A configured search service. `key` belongs to the origin of `base_url`; empty: none is sent."""

    name: str
    base_url: str
    key: str = field(default="", repr=False)
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class Found(Struct, frozen=True):
    """What a search gives: text for the model, and how many results it holds."""

    text: str
    results: int


class Hit(Struct, frozen=True):
    """One result."""

    url: str
    title: str = ""
    text: str = ""
    date: str = ""


Search = Callable[[Service, str, int], Awaitable[Found]]
"""Takes a service, a query, and how many results (web) or tokens (code). Raises ToolFailure."""


class Call(Struct, frozen=True):
    """One request. `path` is added to the service's base URL; `query` to the URL; `body` is sent as JSON."""

    method: str
    path: str = ""
    query: Mapping[str, str] = struct_field(default_factory=dict[str, str])
    headers: Mapping[str, str] = struct_field(default_factory=dict[str, str])
    body: JSON | None = None


class Reply(Struct, frozen=True):
    """The head of an answer that was a success, and its body as it comes."""

    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    async def whole(self) -> bytes:
        """Return the body. Raises ToolFailure when it is longer than `web.search_bytes`."""
        body = await read_body(self.chunks, self.headers.get("content-encoding", ""), WEBSEARCH_BYTES.value)
        if body.is_cut:
            raise ToolFailure(f"The search's answer is longer than {WEBSEARCH_BYTES.value:,} bytes; ask for less.")
        return body.data


@asynccontextmanager
async def called(service: Service, call: Call) -> AsyncGenerator[Reply]:
    """Send a request and give its answer. Raises ToolFailure, whose text never holds the key."""
    import httpx2

    place = _checked(service)
    url = place.url.rstrip("/") + call.path
    headers = {
        "User-Agent": f"codeloop/{__version__}",
        "Accept-Encoding": ", ".join(ENCODINGS[::2]),
        "Accept": "application/json",
        "Connection": "close",
        **call.headers,
    }
    timeout = {"connect": WEB_CONNECT.seconds, "read": WEBSEARCH_TIME.seconds, "write": WEBSEARCH_TIME.seconds}
    try:
        transport = httpx2.AsyncHTTPTransport(
            verify=tls_context(), trust_env=False, proxy=place.proxy(service.environment)
        )
        async with transport:
            request = httpx2.Request(
                call.method,
                httpx2.URL(url, params=dict(call.query)) if call.query else url,
                headers=headers,
                content=None if call.body is None else msgspec.json.encode(call.body),
                extensions={"timeout": timeout},
            )
            response = await transport.handle_async_request(request)
            reply = Reply({n.lower(): v for n, v in response.headers.items()}, response.aiter_raw())
            if not 200 <= response.status_code < 300:
                raise ToolFailure(await _refusal(service, response.status_code, response.reason_phrase, reply))
            try:
                yield reply
            finally:
                await response.aclose()
    except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, ValueError) as error:
        why = _without(service.key, str(error)) or type(error).__name__
        raise ToolFailure(f"{service.name} can't be reached: {why}.") from None


async def called_json(service: Service, call: Call) -> Any:
    """Send a request and give the JSON of its answer. Raises ToolFailure."""
    async with called(service, call) as reply:
        data = await reply.whole()
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise ToolFailure(f"{service.name} answered with something that is no JSON.") from None


def rendered(hits: Sequence[Hit]) -> Found:
    """Return results as text: number, title, address, date, excerpt."""
    blocks: list[str] = []
    for number, hit in enumerate(hits, 1):
        text = " ".join(hit.text.split())
        if len(text) > WEBSEARCH_SNIPPET.value:
            text = text[: WEBSEARCH_SNIPPET.value] + "..."
        title = " ".join(hit.title.split()) or hit.url
        where = f"{hit.url} ({hit.date})" if hit.date else hit.url
        blocks.append("\n".join(part for part in (f"{number}. {title}", where, text) if part))
    return Found("\n\n".join(blocks), len(hits))


def _checked(service: Service) -> WebUrl:
    """Return where the service is. Raises ToolFailure for a key that would be sent in the clear."""
    place = parse(service.base_url)
    if service.key and place.scheme == "http" and not is_loopback(place.host):
        raise ToolFailure(f"{service.name} has a key, which is only sent over https. Correct its base URL.")
    return place


async def _refusal(service: Service, status: int, reason: str, reply: Reply) -> str:
    body = await read_body(reply.chunks, reply.headers.get("content-encoding", ""), 4 * WEB_ERROR.value)
    said = _without(service.key, " ".join(body.data.decode("utf-8", "replace").split()))[: WEB_ERROR.value]
    hint = HINTS.get(status, "")
    if 300 <= status < 400:
        hint = "It leads elsewhere, where no search is sent; correct the base URL."
    parts = (f"{service.name} answered with the status {status} {reason}".strip() + ".", hint, said)
    return " ".join(part for part in parts if part)


def _without(key: str, text: str) -> str:
    return text.replace(key, "***") if key else text
