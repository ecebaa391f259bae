"""One GET over the network, with every address checked before it is connected to, redirects included."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec import field as struct_field

from codeloop import __version__
from codeloop.net.address import HOSTS, has_own_address, look_up, same, why_not_public
from codeloop.net.offline import HINT, is_offline, is_reachable_offline
from codeloop.net.origin import add_brackets, is_local_name
from codeloop.net.tls import tls_context
from codeloop.schema.limits import WEB_ADDRESSES, WEB_BYTES, WEB_CONNECT, WEB_HOPS, WEB_UPGRADE
from codeloop.schema.permission import Need
from codeloop.schema.wire import JSON, replace
from codeloop.store.permission_records import ADDRESS
from codeloop.tool.tool import ToolFailure
from codeloop.tool.web.address import WebUrl, parse, resolve_redirect
from codeloop.tool.web.body import ENCODINGS, read_body

if TYPE_CHECKING:
    from httpx2 import AsyncHTTPTransport, Response

Ask = Callable[..., Awaitable[object]]
"""Asks one question for all the needs that it is given."""
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Dial = Callable[[str, int], tuple[str, int]]

USER_AGENT = f"Mozilla/5.0 (compatible; codeloop/{__version__})"
AGREED = "agreed"
"""Metadata key of a question about a private address: the page itself is already permitted."""
_UPGRADE_ADDRESSES = 2
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Network(Struct, frozen=True):
    """Access to the network: DNS lookup, TLS trust, and proxies of the environment.

    `dial` maps a checked address to the one to connect to; only tests change it. `hosts`: names of this machine's
    hosts file.
    """

    environment: Mapping[str, str] = struct_field(default_factory=dict[str, str])
    resolve: Resolve = look_up
    tls: Callable[[], SSLContext] = tls_context
    dial: Dial = same
    hosts: Path = HOSTS


class FetchRequest(Struct, frozen=True):
    """What to get. `seconds`: in all, without the time that questions take; `given`: the input, for questions."""

    url: str
    accept: str
    seconds: float
    given: JSON


class FetchResponse(Struct, frozen=True):
    """A response. `headers` have lower-case names; `notes`: remarks on the redirects.

    `left`: seconds that are left of those that were wanted.
    """

    url: str
    status: int
    reason: str
    headers: dict[str, str]
    data: bytes
    is_cut: bool
    notes: tuple[str, ...] = ()
    left: float = 0.0


async def fetch(request: FetchRequest, ask: Ask, network: Network) -> FetchResponse:
    """Get a URL, asking `webfetch` for each URL and `webfetch_private` for each host that is not public.

    Raises ToolFailure without a response; an error status is a response. Errors of `ask` are passed on.
    """
    fetching = _Fetch(request, ask, network)
    try:
        return await fetching.run()
    finally:
        await fetching.aclose()


class _Unreachable(ToolFailure):
    """No connection could be made."""


@dataclass
class _Budget:
    """Seconds that are left for the network."""

    left: float
    whole: float

    @asynccontextmanager
    async def spend(self) -> AsyncGenerator[None]:
        """Limit the block by the time left, and subtract its duration. Raises ToolFailure when nothing is left."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self.left)):
                yield
        except TimeoutError:
            raise ToolFailure(
                f"No complete response came within {self.whole:g} s.",
                advice="Try again with a longer timeout, or fetch something smaller.",
            ) from None
        finally:
            self.left -= time.monotonic() - began


class _Fetch:
    """One fetch: from a URL through redirects to the response."""

    def __init__(self, request: FetchRequest, ask: Ask, network: Network) -> None:
        self._wanted, self._ask, self._network = request, ask, network
        self._budget = _Budget(request.seconds, request.seconds)
        self._admitted: set[tuple[str, str]] = set()
        """Hosts with their permitted addresses: a later lookup may return others."""
        self._plain: set[str] = set()
        self._notes: list[str] = []
        self._transports: list[AsyncHTTPTransport] = []

    async def aclose(self) -> None:
        """Drop all connections."""
        while self._transports:
            await self._transports.pop().aclose()

    async def run(self) -> FetchResponse:
        address = parse(self._wanted.url)
        await self._ask_url(address, self._wanted.url.strip())
        for _ in range(WEB_HOPS.value + 1):
            address, response = await self._open(address)
            location = response.headers.get("location")
            if response.status_code not in REDIRECTS or not location:
                return await self._receive(address, response)
            await response.aclose()
            following = resolve_redirect(address, location)
            if address.scheme == "https" and following.scheme == "http":
                self._plain.add(following.host)
                self._notes.append(f"{address.url} redirected from HTTPS to plain HTTP: {following.url}")
            address = following
            await self._ask_url(address, address.url)
        raise ToolFailure(f"{self._wanted.url} redirects more than {WEB_HOPS.value} times.")

    async def _ask_url(self, address: WebUrl, text: str) -> None:
        """Ask for a URL as it was given and, where that differs, as it will be requested. Raises ToolFailure."""
        if is_offline(self._network.environment) and not is_reachable_offline(address.host):
            raise ToolFailure(f"{address.host} can't be reached: {HINT}.", advice="Work with what is on this machine.")
        usual = address.url if address.target != "/" or text.endswith("/") else address.url.removesuffix("/")
        patterns = dict.fromkeys((text.partition("#")[0], usual))
        if _may_be_secured(address):
            patterns["https" + usual.removeprefix("http")] = None
        arguments = self._wanted.given if text == self._wanted.url.strip() else {**self._wanted.given, "redirect": text}
        need = Need(permission="webfetch", patterns=tuple(patterns), always=("*",), metadata=arguments)
        if not self._is_looked_up_here(address):  # looking it up would reveal it to others
            await self._ask(need)
            return
        try:
            _, concerns = await self._look_up(address)
        except ToolFailure:  # a forbidden page is refused, whether it exists or not
            await self._ask(need)
            raise
        private = self._private_needs(address, concerns)
        await self._ask(*private, need)
        self._admit(address, concerns)

    def _is_looked_up_here(self, address: WebUrl) -> bool:
        """Return whether a host is resolved on this machine, without a name server."""
        return (
            address.literal or is_reachable_offline(address.host) or has_own_address(address.host, self._network.hosts)
        )

    async def _open(self, address: WebUrl) -> tuple[WebUrl, "Response"]:
        """Return the response's head and its URL: HTTPS is tried first for public hosts."""
        addresses, is_public = await self._addresses(address)
        async with self._budget.spend():
            if is_public and _may_be_secured(address) and address.host not in self._plain:
                try:
                    first = addresses[:_UPGRADE_ADDRESSES]
                    return address.to_https(), await self._connect(address.to_https(), first, WEB_UPGRADE.seconds)
                except _Unreachable:
                    self._plain.add(address.host)
            return address, await self._connect(address, addresses, WEB_CONNECT.seconds)

    async def _addresses(self, address: WebUrl) -> tuple[Sequence[str], bool]:
        """Resolve a host and ask for permission if any address is not public; also return whether all are public."""
        addresses, concerns = await self._look_up(address)
        for need in self._private_needs(address, concerns):
            await self._ask(replace(need, metadata={**need.metadata, AGREED: True}))
        self._admit(address, concerns)
        return addresses[: WEB_ADDRESSES.value], not concerns

    async def _look_up(self, place: WebUrl) -> tuple[Sequence[str], list[str]]:
        """Return the addresses of a host, and why they may not be public."""
        proxy = place.proxy(self._network.environment)
        addresses: Sequence[str] = (place.host,)
        if not place.literal:
            try:
                async with self._budget.spend():
                    addresses = await self._network.resolve(place.host, place.port)
            except (OSError, UnicodeError) as error:
                addresses = ()
                if proxy is None:
                    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                    raise ToolFailure(
                        f"{place.host} can't be resolved: {why}.", advice="Check the host name."
                    ) from None
        concerns = [f"{address} ({why})" for address in addresses if (why := why_not_public(address)) is not None]
        if place.odd and not concerns:
            concerns = [f"{place.host} (an unusual spelling of an address)"]
        if not addresses:
            if proxy is None:
                raise ToolFailure(f"{place.host} has no address.")
            concerns = ["unknown (only the proxy can look the name up)"]
        return addresses, concerns

    def _private_needs(self, address: WebUrl, concerns: Sequence[str]) -> list[Need]:
        """Return the need for a host that may not be public, unless this call was allowed these addresses already."""
        if all((address.endpoint, each) in self._admitted for each in concerns):
            return []
        target = (address.endpoint,)
        metadata: JSON = {"url": address.url, ADDRESS: ", ".join(sorted(concerns))}
        return [Need(permission="webfetch_private", patterns=target, always=target, metadata=metadata)]

    def _admit(self, address: WebUrl, concerns: Sequence[str]) -> None:
        self._admitted |= {(address.endpoint, each) for each in concerns}

    async def _connect(self, url: WebUrl, addresses: Sequence[str], seconds: float) -> "Response":
        """Send the request to the first address that can be reached, or through the proxy, by name."""
        import httpx2

        proxy = url.proxy(self._network.environment)
        if proxy is not None:
            return await self._send(url, (url.host, url.port), seconds, proxy)
        trouble = ""
        for address in addresses:
            try:
                return await self._send(url, self._network.dial(address, url.port), seconds)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                trouble = str(error) or type(error).__name__
        raise _Unreachable(f"{url.url} can't be reached: {trouble}.")

    async def _send(self, target: WebUrl, to: tuple[str, int], seconds: float, proxy: str | None = None) -> "Response":
        """Send the request. Raises ToolFailure, without a proxy also httpx2's ConnectError and ConnectTimeout."""
        import httpx2

        headers = {
            "Host": target.authority,
            "User-Agent": USER_AGENT,
            "Accept": self._wanted.accept,
            "Accept-Language": "en-US,en;q=0.9,*;q=0.5",
            "Accept-Encoding": ", ".join(ENCODINGS[::2]),
            "Connection": "close",
        }
        extensions = {"sni_hostname": target.host, "timeout": {"connect": seconds}}
        url = f"{target.scheme}://{add_brackets(to[0])}:{to[1]}{target.target}"
        try:
            request = httpx2.Request("GET", url, headers=headers, extensions=extensions)
            # A transport, not a client: it keeps no cookies, knows no netrc, and follows nothing.
            transport = httpx2.AsyncHTTPTransport(verify=self._network.tls(), trust_env=False, proxy=proxy)
            self._transports.append(transport)
            return await transport.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if proxy is None:
                raise
            raise _Unreachable(
                f"{target.url} can't be reached by the environment's proxy: {_describe_error(error)}."
            ) from None
        except httpx2.ProxyError as error:
            raise _Unreachable(f"The proxy of the environment refused {target.endpoint}: {error}.") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ImportError, ValueError) as error:
            raise ToolFailure(f"{target.url} sent no valid response: {_describe_error(error)}.") from None

    async def _receive(self, address: WebUrl, response: "Response") -> FetchResponse:
        import httpx2

        headers = {name.lower(): value for name, value in response.headers.items()}
        try:
            async with self._budget.spend():
                body = await read_body(response.aiter_raw(), headers.get("content-encoding", ""), WEB_BYTES.value)
        except httpx2.HTTPError as error:
            raise ToolFailure(
                f"The response of {address.url} was cut off: {_describe_error(error)}.", advice="Try again."
            ) from None
        finally:
            await response.aclose()
        return FetchResponse(
            url=address.url,
            status=response.status_code,
            reason=response.reason_phrase,
            headers=headers,
            data=body.data,
            is_cut=body.is_cut,
            notes=tuple(self._notes),
            left=self._budget.left,
        )


def _may_be_secured(address: WebUrl) -> bool:
    """Return whether HTTPS is worth a try: not for ports that were named, addresses and this machine."""
    return address.scheme == "http" and not (address.names_port or address.literal or is_local_name(address.host))


def _describe_error(error: Exception) -> str:
    return str(error) or type(error).__name__
