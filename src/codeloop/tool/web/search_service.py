"""A search service, and HTTP requests to it: its key is only sent to its own origin,
and no redirect is followed.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec import field as struct_field

from codeloop import __version__
from codeloop.net.hosts import OFFLINE_MESSAGE, is_loopback, is_offline, is_reachable_offline
from codeloop.net.tls import load_tls_context
from codeloop.schema.limits import (
    WEB_CONNECT,
    WEB_ERROR,
    WEBSEARCH_BYTES,
    WEBSEARCH_QUERY,
    WEBSEARCH_SNIPPET,
    WEBSEARCH_TIME,
)
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.body import ACCEPT_ENCODING, read_body
from codeloop.tool.web.url import WebUrl, parse_url

T = TypeVar("T")
STATUS_HINTS = {
    401: "The key is refused.",
    403: "The key is refused, or lacks the right to search.",
    404: "Is the base URL right?",
    429: "Too many searches; wait, or use a key with a higher limit.",
}


class Hit(Struct, frozen=True):
    """One search result. `date`: as the service writes it, empty when unknown."""

    url: str
    title: str = ""
    text: str = ""
    date: str = ""


class SearchResults(Struct, frozen=True):
    """The results of a search as one text for the model, and how many they are."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class SearchService:
    """A configured search service. `provider`: its id; `name`: its name for users.

    `key`: for the origin of `base_url`; empty: no key is sent.
    `search_code`: None: the service can't search code.
    `fault`: why the service can't be used; empty: it can.
    """

    provider: str
    name: str
    base_url: str
    search: "SearchFunction"
    search_code: "SearchFunction | None" = None
    # Not in the `repr`, so that no log and no traceback shows it.
    key: str = field(default="", repr=False)
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    fault: str = ""

    async def run_search(self, search: "SearchFunction", query: str, amount: int) -> SearchResults:
        """Call a search function of the service, with a deadline. `amount`: see SearchFunction.
        Raises ToolFailure.
        """
        if self.fault:
            raise ToolFailure(self.fault)
        try:
            async with asyncio.timeout(WEBSEARCH_TIME.seconds):
                return await search(self, query, amount)
        except TimeoutError:
            seconds = WEBSEARCH_TIME.value // 1000
            raise ToolFailure(
                f"{self.name} did not answer within {seconds} s.", advice="Try again later."
            ) from None


SearchFunction = Callable[[SearchService, str, int], Awaitable[SearchResults]]
"""Takes a service, a query, and the number of results (web) or tokens (code) to return.
Raises ToolFailure.
"""


class SearchRequest(Struct, frozen=True):
    """An HTTP request to a service. `path` is appended to its base URL; `body` is sent as JSON."""

    method: str
    path: str = ""
    query: Mapping[str, str] = struct_field(default_factory=dict[str, str])
    headers: Mapping[str, str] = struct_field(default_factory=dict[str, str])
    body: JSON | None = None


class SearchResponse(Struct, frozen=True):
    """The headers of a successful response, and its body as it arrives."""

    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    async def read_whole(self) -> bytes:
        """Return the whole body. Raises ToolFailure if it is longer than the
        limit `web.search_bytes`.
        """
        body = await read_body(
            self.chunks, self.headers.get("content-encoding", ""), WEBSEARCH_BYTES.value
        )
        if body.is_cut:
            raise ToolFailure(
                f"The response has more than {WEBSEARCH_BYTES.value:,} bytes.",
                advice="Ask for fewer results.",
            )
        return body.data


@asynccontextmanager
async def send_request(
    service: SearchService, request: SearchRequest
) -> AsyncGenerator[SearchResponse]:
    """Send a request and yield its response. Raises ToolFailure;
    its message never contains the key.
    """
    import httpx2

    base = _check_url(service)
    if is_offline(service.environment) and not is_reachable_offline(base.host):
        raise ToolFailure(
            f"{service.name} can't be reached: {OFFLINE_MESSAGE}.",
            advice="Work with what is on this machine.",
        )
    url = base.url.rstrip("/") + request.path
    headers = {
        "User-Agent": f"codeloop/{__version__}",
        "Accept-Encoding": ACCEPT_ENCODING,
        "Accept": "application/json",
        "Connection": "close",
        **request.headers,
    }
    timeout = {
        "connect": WEB_CONNECT.seconds,
        "read": WEBSEARCH_TIME.seconds,
        "write": WEBSEARCH_TIME.seconds,
    }
    try:
        # A transport instead of a client: it follows no redirects,
        # which could lead the key elsewhere.
        transport = httpx2.AsyncHTTPTransport(
            verify=load_tls_context(), trust_env=False, proxy=base.find_proxy(service.environment)
        )
        async with transport:
            sent = httpx2.Request(
                request.method,
                httpx2.URL(url, params=dict(request.query)) if request.query else url,
                headers=headers,
                content=None if request.body is None else msgspec.json.encode(request.body),
                extensions={"timeout": timeout},
            )
            received = await transport.handle_async_request(sent)
            response_headers = {name.lower(): value for name, value in received.headers.items()}
            response = SearchResponse(response_headers, received.aiter_raw())
            if not 200 <= received.status_code < 300:
                raise ToolFailure(
                    await _describe_refusal(
                        service, received.status_code, received.reason_phrase, response
                    )
                )
            try:
                yield response
            finally:
                await received.aclose()
    except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, ValueError) as error:
        why = mask_key(service, str(error)) or type(error).__name__
        raise ToolFailure(f"{service.name} can't be reached: {why}.") from None


async def fetch_json(service: SearchService, request: SearchRequest, answer_type: type[T]) -> T:
    """Send a request and return its JSON response as a value of `answer_type`.
    Raises ToolFailure.
    """
    async with send_request(service, request) as response:
        data = await response.read_whole()
    try:
        return decode_json(data, answer_type)
    except msgspec.ValidationError as error:
        raise ToolFailure(f"{service.name} sent a response of an unknown form: {error}.") from None
    except DECODE_ERRORS:
        raise ToolFailure(f"{service.name} sent a response that is not JSON.") from None


def check_query(query: str) -> str:
    """Return a query without blanks around it. Raises ToolFailure if it is empty or too long."""
    text = query.strip()
    if not text:
        raise ToolFailure("The query is empty.", advice="Say what to search for.")
    if len(text) > WEBSEARCH_QUERY.value:
        raise ToolFailure(
            f"The query is longer than {WEBSEARCH_QUERY.value} characters.", advice="Shorten it."
        )
    return text


def format_hits(hits: Sequence[Hit]) -> SearchResults:
    """Format results as text: number, title, address, date and excerpt of each."""
    blocks: list[str] = []
    for number, hit in enumerate(hits, 1):
        text = " ".join(hit.text.split())
        if len(text) > WEBSEARCH_SNIPPET.value:
            text = text[: WEBSEARCH_SNIPPET.value] + "..."
        where = f"{hit.url} ({hit.date})" if hit.date else hit.url
        lines = [line for line in (" ".join(hit.title.split()), where, text) if line]
        blocks.append(f"{number}. " + "\n".join(lines))
    return SearchResults("\n\n".join(blocks), len(hits))


def mask_key(service: SearchService, text: str) -> str:
    """Return a text with the service's key masked: an error may repeat the request."""
    return text.replace(service.key, "***") if service.key else text


def _check_url(service: SearchService) -> WebUrl:
    """Return the service's base URL. Raises ToolFailure if its key would be sent
    unencrypted over the network.
    """
    url = parse_url(service.base_url)
    if service.key and url.scheme == "http" and not is_loopback(url.host):
        raise ToolFailure(
            f"{service.name} has a key, which is only sent over https. Correct its base URL."
        )
    return url


async def _describe_refusal(
    service: SearchService, status: int, reason: str, response: SearchResponse
) -> str:
    body = await read_body(
        response.chunks, response.headers.get("content-encoding", ""), 4 * WEB_ERROR.value
    )
    text = mask_key(service, " ".join(body.data.decode("utf-8", "replace").split()))[
        : WEB_ERROR.value
    ]
    hint = STATUS_HINTS.get(status, "")
    if 300 <= status < 400:
        hint = "It redirects, and no search is sent elsewhere; correct the base URL."
    parts = (f"{service.name} answered with the status {status} {reason}".strip() + ".", hint, text)
    return " ".join(part for part in parts if part)
