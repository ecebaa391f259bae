"""Strict parsing of URLs. Pure."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_network
from string import punctuation
from unicodedata import normalize
from urllib.parse import quote, urljoin, urlsplit

from msgspec import Struct

from codeloop.net.address import NAT64
from codeloop.net.origin import add_brackets, is_local_name
from codeloop.net.proxy import proxy_for
from codeloop.schema.limits import WEB_URL
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolFailure

PORTS = {"http": 80, "https": 443}

_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class WebUrl(Struct, frozen=True):
    """A parsed URL. `host` is lower-case ASCII without a final dot, an address in its usual spelling without brackets.

    `target`: path and query as they are sent. `literal`: the host is an address. `odd`: an address in a spelling that
    hides what it is (octal, hexadecimal, one number, short forms, other scripts' digits, IPv4 inside IPv6).
    """

    scheme: str
    host: str
    port: int
    target: str
    literal: bool = False
    odd: bool = False
    names_port: bool = False

    @property
    def authority(self) -> str:
        """The host, with the port unless it is the scheme's own: what the header `Host` says."""
        return add_brackets(self.host) + ("" if self.port == PORTS[self.scheme] else f":{self.port}")

    @property
    def url(self) -> str:
        """The URL in its usual spelling."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def endpoint(self) -> str:
        """`host:port`, what a rule for private addresses names."""
        return f"{add_brackets(self.host)}:{self.port}"

    def proxy(self, environment: Mapping[str, str]) -> str | None:
        """Return the URL of the proxy that the environment names for the URL, None for a direct connection."""
        return None if is_local_name(self.host) else proxy_for(self.scheme, self.host, self.port, environment)

    def to_https(self) -> "WebUrl":
        """Return the same URL over HTTPS."""
        return replace(self, scheme="https", port=PORTS["https"])


def parse(url: str) -> WebUrl:
    """Parse a URL. Raises ToolFailure for what is not plain HTTP(S), or ambiguous."""
    text = url.strip()
    if len(text) > WEB_URL.value:
        raise ToolFailure(f"The URL is longer than {WEB_URL.value} characters.", advice="Give a shorter one.")
    if re.search(r"[\x00-\x1f\x7f\\]", text):
        raise _refuse(text, "it contains control characters or a backslash")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _refuse(text, str(error)) from None
    scheme = parts.scheme.lower()
    if scheme not in PORTS:
        what = f"the scheme {scheme}: can't be fetched" if scheme else "it has no scheme"
        hint = "; use the read tool for a file" if scheme == "file" else ""
        raise _refuse(text, f"{what}; only http:// and https:// can{hint}")
    if "@" in parts.netloc:
        raise _refuse(text, "it carries a user name or password, which are never sent; leave them out")
    if port == 0:
        raise _refuse(text, "port 0 can't be connected to")
    raw = parts.netloc.rpartition(":")[0] if parts.port is not None else parts.netloc.rstrip(":")
    place = WebUrl(scheme, "", port or PORTS[scheme], _target(parts.path, parts.query), names_port=port is not None)
    return _with_host(place, raw, text)


def resolve_redirect(place: WebUrl, location: str) -> WebUrl:
    """Return where a redirect from `place` leads. Raises ToolFailure."""
    try:
        return parse(urljoin(place.url, location.strip()))
    except ValueError as error:
        raise _refuse(location, str(error)) from None


def _target(path: str, query: str) -> str:
    """Return path and query with what can't be sent escaped; escapes that are there stay."""
    return quote(path, safe=punctuation) + (f"?{quote(query, safe=punctuation)}" if query else "")


def _with_host(place: WebUrl, raw: str, url: str) -> WebUrl:
    if raw.startswith("["):
        try:
            ip = IPv6Address(raw[1:-1])
        except ValueError:
            raise _refuse(url, f"{raw} is not an IPv6 address") from None
        if ip.scope_id is not None:
            raise _refuse(url, "a zone id is not allowed")
        return replace(place, host=ip.compressed, literal=True, odd=ip in ip_network(NAT64))
    host = _ascii(raw, url).removesuffix(".")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        address = str(IPv4Address(_ipv4(host, url)))
        return replace(place, host=address, literal=True, odd=raw != address)
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise _refuse(url, f"{raw!r} is not a host name")
    return replace(place, host=host)


def _ascii(raw: str, url: str) -> str:
    """Return a host in ASCII, as a browser would look it up."""
    host = normalize("NFKC", raw).replace("\u3002", ".").lower()
    if host.isascii():
        return host
    import httpx2

    try:
        return httpx2.URL(f"https://{host}/").raw_host.decode("ascii")
    except httpx2.InvalidURL:
        raise _refuse(url, f"{raw!r} is not a host name") from None


def _ipv4(host: str, url: str) -> int:
    """Read what resolvers take for an IPv4 address: one to four numbers, decimal, octal or hexadecimal."""
    numbers = [_number(part) for part in host.split(".")]
    *first, last = numbers
    if len(numbers) > 4 or None in numbers or any((n or 0) > 255 for n in first):
        raise _refuse(url, f"{host} is not an IPv4 address")
    rest = 8 * (4 - len(first))
    value = sum((n or 0) << (24 - 8 * index) for index, n in enumerate(first))
    if (last or 0) >= 1 << rest:
        raise _refuse(url, f"{host} is not an IPv4 address")
    return value | (last or 0)


def _number(part: str) -> int | None:
    if not _NUMBER.fullmatch(part) or len(part) > 20:
        return None
    try:
        if part.startswith("0x"):
            return int(part[2:] or "0", 16)
        return int(part, 8 if part.startswith("0") and len(part) > 1 else 10)
    except ValueError:
        return None


def _refuse(url: str, why: str) -> ToolFailure:
    shown = url.encode("unicode_escape").decode()[:200]
    if "@" in shown:
        shown = "***@" + shown.rpartition("@")[2]
    return ToolFailure(f"{shown} can't be fetched: {why}.")
