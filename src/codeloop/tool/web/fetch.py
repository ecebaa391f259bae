"""Fetches a URL with a GET request: `fetch_url` checks every address before it connects,
also after redirects.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from ssl import SSLContext
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec import field as struct_field

from codeloop import __version__
from codeloop.net.address import (
    HOSTS_FILE,
    classify_non_public,
    is_in_hosts_file,
    keep_address,
    resolve_host,
)
from codeloop.net.hosts import (
    OFFLINE_MESSAGE,
    add_brackets,
    is_local_host,
    is_offline,
    is_reachable_offline,
)
from codeloop.net.tls import load_tls_context
from codeloop.schema.limits import WEB_ADDRESSES, WEB_BYTES, WEB_CONNECT, WEB_HOPS, WEB_UPGRADE
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, replace
from codeloop.store.permission_records import ADDRESS_KEY
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.body import ACCEPT_ENCODING, read_body
from codeloop.tool.web.time_budget import TimeBudget
from codeloop.tool.web.url import WebUrl, parse_url, resolve_redirect

if TYPE_CHECKING:
    from httpx2 import AsyncHTTPTransport, Response

AskPermission = Callable[..., Awaitable[object]]
"""Asks for all permissions that it is called with (Needs) in one question."""
ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]
"""Takes a host and a port, and returns the host's addresses."""
ReplaceAddress = Callable[[str, int], tuple[str, int]]
"""Takes a checked address and port, and returns those to connect to."""

USER_AGENT = f"Mozilla/5.0 (compatible; codeloop/{__version__})"
AGREED_KEY = "agreed"
"""The metadata key of a question about a private address that is set when the page
itself is already permitted.
"""
# After so many of a host's addresses failed over HTTPS, plain HTTP is used.
_UPGRADE_ADDRESSES = 2
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


class Network(Struct, frozen=True):
    """Access to the network: DNS lookup, TLS trust, and the environment, which may name proxies.

    `replace_address` replaces a checked address before the connection; only tests set it.
    `hosts_file`: its path.
    """

    environment: Mapping[str, str] = struct_field(default_factory=dict[str, str])
    resolve: ResolveHost = resolve_host
    load_tls: Callable[[], SSLContext] = load_tls_context
    replace_address: ReplaceAddress = keep_address
    hosts_file: Path = HOSTS_FILE


class FetchRequest(Struct, frozen=True):
    """A GET request to make. `accept`: the header of that name.
    `seconds`: the limit of time spent on the network.

    `arguments`: the arguments of the tool call, which permission questions show.
    """

    url: str
    accept: str
    seconds: float
    arguments: JSON


class FetchResponse(Struct, frozen=True):
    """The response to a GET. The names of `headers` are in lower case;
    `notes`: remarks on the redirects.

    `seconds_left`: the part of the request's `seconds` that was not used.
    """

    url: str
    status: int
    reason: str
    headers: dict[str, str]
    data: bytes
    is_cut: bool
    notes: tuple[str, ...] = ()
    seconds_left: float = 0.0


async def fetch_url(request: FetchRequest, ask: AskPermission, network: Network) -> FetchResponse:
    """Fetch a URL. Asks for `webfetch` for each URL, and for `webfetch_private` for
    each host that is not public.

    Returns the response also if its status is an error. Raises ToolFailure if there is no response,
    and the errors of `ask`.
    """
    fetcher = _Fetcher(request, ask, network)
    try:
        return await fetcher.run()
    finally:
        await fetcher.aclose()


class _HostUnreachable(ToolFailure):
    """No connection could be made."""


class _Fetcher:
    """Fetches one URL, through redirects, to the response."""

    def __init__(self, request: FetchRequest, ask: AskPermission, network: Network) -> None:
        self._request = request
        self._ask = ask
        self._network = network
        self._budget = TimeBudget(remaining=request.seconds, total=request.seconds)
        self._admitted: set[tuple[str, str]] = set()
        """Pairs of an endpoint and a concern that the user has accepted: a later lookup
        may return other addresses.
        """
        self._http_hosts: set[str] = set()
        """Hosts that are requested over plain HTTP: HTTPS failed,
        or an HTTPS page redirected to it.
        """
        self._notes: list[str] = []
        self._transports: list[AsyncHTTPTransport] = []

    async def aclose(self) -> None:
        """Close all connections."""
        while self._transports:
            await self._transports.pop().aclose()

    async def run(self) -> FetchResponse:
        """Request the URL and those that it redirects to;
        return the first response that is not a redirect.
        """
        url = parse_url(self._request.url)
        await self._ask_url(url, self._request.url.strip())
        for _ in range(WEB_HOPS.value + 1):
            url, response = await self._open(url)
            location = response.headers.get("location")
            if response.status_code not in REDIRECT_STATUSES or not location:
                return await self._receive(url, response)
            await response.aclose()
            next_url = resolve_redirect(url, location)
            if url.scheme == "https" and next_url.scheme == "http":
                self._http_hosts.add(next_url.host)
                self._notes.append(f"{url.url} redirected from HTTPS to plain HTTP: {next_url.url}")
            url = next_url
            await self._ask_url(url, url.url)
        raise ToolFailure(f"{self._request.url} redirects more than {WEB_HOPS.value} times.")

    async def _ask_url(self, url: WebUrl, text: str) -> None:
        """Ask for permission to fetch a URL. Rules may match it as written (`text`)
        or in its usual spelling.
        """
        if is_offline(self._network.environment) and not is_reachable_offline(url.host):
            raise ToolFailure(
                f"{url.host} can't be reached: {OFFLINE_MESSAGE}.",
                advice="Work with what is on this machine.",
            )
        usual_url = (
            url.url if url.target != "/" or text.endswith("/") else url.url.removesuffix("/")
        )
        patterns = dict.fromkeys((text.partition("#")[0], usual_url))
        if _may_be_secured(url):
            patterns["https" + usual_url.removeprefix("http")] = None
        arguments = (
            self._request.arguments
            if text == self._request.url.strip()
            else {**self._request.arguments, "redirect": text}
        )
        need = Need(
            permission="webfetch", patterns=tuple(patterns), always=("*",), metadata=arguments
        )
        # A lookup tells the name to a name server, which needs the permission first.
        if not self._is_looked_up_here(url):
            await self._ask(need)
            return
        try:
            _, concerns = await self._look_up(url)
        except ToolFailure:
            # A forbidden page is refused, whether it exists or not.
            await self._ask(need)
            raise
        private = self._make_private_needs(url, concerns)
        await self._ask(*private, need)
        self._admit(url, concerns)

    def _is_looked_up_here(self, url: WebUrl) -> bool:
        """Return whether this machine resolves a host without asking a name server."""
        return (
            url.is_literal
            or is_reachable_offline(url.host)
            or is_in_hosts_file(url.host, self._network.hosts_file)
        )

    async def _open(self, url: WebUrl) -> tuple[WebUrl, "Response"]:
        """Request a URL, from public hosts over HTTPS if they offer it;
        return the requested URL and the response.
        """
        addresses, is_public = await self._resolve_permitted(url)
        async with self._budget.spend():
            if is_public and _may_be_secured(url) and url.host not in self._http_hosts:
                try:
                    tried_addresses = addresses[:_UPGRADE_ADDRESSES]
                    return url.to_https(), await self._connect(
                        url.to_https(), tried_addresses, WEB_UPGRADE.seconds
                    )
                except _HostUnreachable:
                    # Later redirects to this host do not try HTTPS again.
                    self._http_hosts.add(url.host)
            return url, await self._connect(url, addresses, WEB_CONNECT.seconds)

    async def _resolve_permitted(self, url: WebUrl) -> tuple[Sequence[str], bool]:
        """Return the addresses of a host, and whether all are public;
        if not, ask for permission to use them.
        """
        addresses, concerns = await self._look_up(url)
        for need in self._make_private_needs(url, concerns):
            await self._ask(replace(need, metadata={**need.metadata, AGREED_KEY: True}))
        self._admit(url, concerns)
        return addresses[: WEB_ADDRESSES.value], not concerns

    async def _look_up(self, url: WebUrl) -> tuple[Sequence[str], list[str]]:
        """Return the addresses of a host, and a concern for each that may not be public.

        Without an address the concerns say so, if a proxy may still find one.
        Raises ToolFailure otherwise.
        """
        proxy = url.find_proxy(self._network.environment)
        addresses: Sequence[str] = (url.host,)
        if not url.is_literal:
            try:
                async with self._budget.spend():
                    addresses = await self._network.resolve(url.host, url.port)
            except (OSError, UnicodeError) as error:
                addresses = ()
                if proxy is None:
                    why = (
                        error.strerror
                        if isinstance(error, OSError) and error.strerror
                        else str(error)
                    )
                    raise ToolFailure(
                        f"{url.host} can't be resolved: {why}.", advice="Check the host name."
                    ) from None
        concerns: list[str] = []
        for address in addresses:
            reason = classify_non_public(address)
            if reason is not None:
                concerns.append(f"{address} ({reason})")
        if url.is_disguised and not concerns:
            concerns = [f"{url.host} (an unusual spelling of an address)"]
        if not addresses:
            if proxy is None:
                raise ToolFailure(f"{url.host} has no address.")
            concerns = ["unknown (only the proxy can look the name up)"]
        return addresses, concerns

    def _make_private_needs(self, url: WebUrl, concerns: Sequence[str]) -> list[Need]:
        """Return the need for a host with concerns; none if the user has accepted
        all of them in this call.
        """
        if all((url.endpoint, each) in self._admitted for each in concerns):
            return []
        target = (url.endpoint,)
        metadata: JSON = {"url": url.url, ADDRESS_KEY: ", ".join(sorted(concerns))}
        return [
            Need(permission="webfetch_private", patterns=target, always=target, metadata=metadata)
        ]

    def _admit(self, url: WebUrl, concerns: Sequence[str]) -> None:
        self._admitted |= {(url.endpoint, each) for each in concerns}

    async def _connect(self, url: WebUrl, addresses: Sequence[str], seconds: float) -> "Response":
        """Send the request to the first address that can be reached;
        to a proxy it goes with the host's name.
        """
        import httpx2

        proxy = url.find_proxy(self._network.environment)
        if proxy is not None:
            return await self._send(url, (url.host, url.port), seconds, proxy)
        trouble = ""
        for address in addresses:
            try:
                return await self._send(
                    url, self._network.replace_address(address, url.port), seconds
                )
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                trouble = str(error) or type(error).__name__
        raise _HostUnreachable(f"{url.url} can't be reached: {trouble}.")

    async def _send(
        self, target: WebUrl, endpoint: tuple[str, int], seconds: float, proxy: str | None = None
    ) -> "Response":
        """Send the request. Raises ToolFailure, and without a proxy httpx2's ConnectError
        and ConnectTimeout.
        """
        import httpx2

        headers = {
            "Host": target.authority,
            "User-Agent": USER_AGENT,
            "Accept": self._request.accept,
            "Accept-Language": "en-US,en;q=0.9,*;q=0.5",
            "Accept-Encoding": ACCEPT_ENCODING,
            "Connection": "close",
        }
        # The URL has the checked address, so that no second lookup can lead elsewhere;
        # TLS and `Host` have the name.
        extensions = {"sni_hostname": target.host, "timeout": {"connect": seconds}}
        url = f"{target.scheme}://{add_brackets(endpoint[0])}:{endpoint[1]}{target.target}"
        try:
            request = httpx2.Request("GET", url, headers=headers, extensions=extensions)
            # A transport instead of a client: it keeps no cookies, reads no netrc,
            # and follows no redirects.
            transport = httpx2.AsyncHTTPTransport(
                verify=self._network.load_tls(), trust_env=False, proxy=proxy
            )
            self._transports.append(transport)
            return await transport.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if proxy is None:
                raise
            raise _HostUnreachable(
                f"{target.url} can't be reached by the environment's proxy: {_describe_error(error)}."
            ) from None
        except httpx2.ProxyError as error:
            raise _HostUnreachable(
                f"The proxy of the environment refused {target.endpoint}: {error}."
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, ValueError) as error:
            raise ToolFailure(
                f"{target.url} sent no valid response: {_describe_error(error)}."
            ) from None

    async def _receive(self, url: WebUrl, response: "Response") -> FetchResponse:
        import httpx2

        headers = {name.lower(): value for name, value in response.headers.items()}
        try:
            async with self._budget.spend():
                body = await read_body(
                    response.aiter_raw(), headers.get("content-encoding", ""), WEB_BYTES.value
                )
        except httpx2.HTTPError as error:
            raise ToolFailure(
                f"The response of {url.url} was cut off: {_describe_error(error)}.",
                advice="Try again.",
            ) from None
        finally:
            await response.aclose()
        return FetchResponse(
            url=url.url,
            status=response.status_code,
            reason=response.reason_phrase,
            headers=headers,
            data=body.data,
            is_cut=body.is_cut,
            notes=tuple(self._notes),
            seconds_left=self._budget.remaining,
        )


def _may_be_secured(url: WebUrl) -> bool:
    """Return whether HTTPS is tried for a URL: it is HTTP, without a port,
    and its host is neither an IP nor local.
    """
    return url.scheme == "http" and not (
        url.names_port or url.is_literal or is_local_host(url.host)
    )


def _describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
