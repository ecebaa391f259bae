"""The HTTP client for one remote server, and whether its sign-in provider registers clients by itself."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from codeloop.extend.mcp.cache.definition import RemoteDefinition
from codeloop.extend.mcp.transport.failures import RegistrationNeeded, SignInNeeded, list_request_errors, make_refusal
from codeloop.net.errors import NetworkError
from codeloop.net.offline import require_reachable
from codeloop.net.proxy import find_proxy
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.limits import MCP_LIST, MCP_MESSAGE, MCP_START

if TYPE_CHECKING:
    import httpx2

_REFUSAL_STATUSES = frozenset((401, 403))


def make_http_client(
    headers: Mapping[str, str], auth: "httpx2.Auth | None", note_status: Callable[[int], None]
) -> "httpx2.AsyncClient":
    """Return a client for one server and its sign-in, which may be at another host. `note_status` gets each status."""
    import httpx2

    async def check_status(response: httpx2.Response) -> None:
        note_status(response.status_code)
        if response.status_code in _REFUSAL_STATUSES and auth is None:
            raise SignInNeeded(f"it answered {response.status_code} {response.reason_phrase}: check its `headers`")
        _limit_size(response)

    return httpx2.AsyncClient(
        headers=dict(headers),
        auth=auth,
        transport=_make_host_transport(),
        # Reading has no limit here: an event stream may be silent for long, and requests have limits of their own.
        timeout=httpx2.Timeout(MCP_START.seconds, read=None),
        event_hooks={"response": [check_status]},
    )


def _make_host_transport() -> "httpx2.AsyncBaseTransport":
    """Return a transport that reaches each host directly or through the environment's proxy for it."""
    import httpx2

    transports: dict[tuple[str | None, bool], httpx2.AsyncHTTPTransport] = {}

    class ByHost(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            url = request.url
            try:
                require_reachable(url.host)
            except NetworkError as error:
                raise httpx2.ConnectError(str(error), request=request) from None
            port = url.port or (443 if url.scheme == "https" else 80)
            # For each request, since a sign-in goes to other hosts than the server's.
            proxy = find_proxy(url.scheme, url.host, port, os.environ)
            is_secure = url.scheme == "https" or (proxy or "").startswith("https")
            transport = transports.get((proxy, is_secure))
            if transport is None:
                transport = httpx2.AsyncHTTPTransport(
                    # Loading the certificates takes time, and plain HTTP needs none.
                    verify=load_service_tls_context() if is_secure else False,
                    proxy=proxy,
                )
                transports[proxy, is_secure] = transport
            return await transport.handle_async_request(request)

        async def aclose(self) -> None:
            for transport in transports.values():
                await transport.aclose()

    return ByHost()


def _limit_size(response: "httpx2.Response") -> None:
    """Limit the size of a response; in event streams, of each event."""
    import httpx2

    stream = response.stream
    is_events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    # A stream of events has no end; the package bounds each event.
    if is_events or not isinstance(stream, httpx2.AsyncByteStream):
        return

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncGenerator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > MCP_MESSAGE.value:
                    raise httpx2.ReadError(f"it sent a message of more than {MCP_MESSAGE.value:,} bytes")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = Bounded()


CALLBACK_PATH = "/mcp/oauth/callback"
CALLBACK_PORT = 19876
"""The default redirect of a manually registered client."""


def describe_registration(name: str) -> str:
    """Return the advice for a server without automatic client registration."""
    return (
        f"its provider registers no clients by itself. Register codeloop there, with the redirect address "
        f'http://127.0.0.1:{CALLBACK_PORT}{CALLBACK_PATH}, and set `"oauth": {{"clientId": "..."}}` in mcp.{name}'
    )


async def check_registration(name: str, config: RemoteDefinition, error: SignInNeeded) -> None:
    """Look up the provider of a server that requires a sign-in. Raises RegistrationNeeded when none is possible.

    If in doubt it counts as possible: the sign-in itself reports errors.
    """
    if config.oauth is False or (config.oauth and config.oauth.client_id):
        return
    import httpx2

    is_closed = False
    with suppress(*list_request_errors()):
        async with (
            asyncio.timeout(MCP_LIST.seconds),
            make_http_client({}, httpx2.Auth(), lambda _status: None) as client,
        ):
            is_closed = await _refuses_registration(config.url, error.challenge, client)
    if is_closed:
        raise RegistrationNeeded(describe_registration(name))


async def _refuses_registration(url: str, challenge: str, client: "httpx2.AsyncClient") -> bool:
    from mcp.client.auth.utils import (
        build_oauth_authorization_server_metadata_discovery_urls,
        build_protected_resource_metadata_discovery_urls,
        create_oauth_metadata_request,
        extract_resource_metadata_from_www_auth,
        handle_auth_metadata_response,
        handle_protected_resource_response,
    )

    provider: str | None = None
    metadata_url = extract_resource_metadata_from_www_auth(make_refusal(challenge))
    for address in build_protected_resource_metadata_discovery_urls(metadata_url, url):
        resource = await handle_protected_resource_response(await client.send(create_oauth_metadata_request(address)))
        if resource is not None:
            provider = str(resource.authorization_servers[0])
            break
    for address in build_oauth_authorization_server_metadata_discovery_urls(provider, url):
        _, oauth_metadata = await handle_auth_metadata_response(
            await client.send(create_oauth_metadata_request(address))
        )
        if oauth_metadata is not None:
            return oauth_metadata.registration_endpoint is None
    return False
