"""Parses the URLs that tools fetch, strictly: the host that is checked and asked about
must be the one connected to.
"""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_network
from string import punctuation
from unicodedata import normalize
from urllib.parse import quote, urljoin, urlsplit

from msgspec import Struct

from codeloop.net.address import NAT64_NETWORK, spell_address
from codeloop.net.hosts import add_brackets, is_local_host
from codeloop.net.proxy import find_proxy
from codeloop.schema.limits import WEB_URL
from codeloop.schema.wire import replace
from codeloop.tool.tool import ToolFailure

DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST_NAME = r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*"
_NUMBER = r"[0-9]+|0x[0-9a-f]*"


class WebUrl(Struct, frozen=True):
    """A parsed URL. `host`: lower-case ASCII without a final dot;
    an IP address in its usual spelling without [].

    `target`: path and query, as they are sent. `is_literal`: the host is an IP address.
    `is_disguised`: the URL has an unusual spelling of that address (octal, hexadecimal, one number,
    short forms, other scripts' digits, IPv4 in
    the NAT64 prefix). `names_port`: the URL has an explicit port.
    """

    scheme: str
    host: str
    port: int
    target: str
    is_literal: bool = False
    is_disguised: bool = False
    names_port: bool = False

    @property
    def authority(self) -> str:
        """The value of the `Host` header: the host,
        and the port unless it is the scheme's default.
        """
        return add_brackets(self.host) + (
            "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        )

    @property
    def url(self) -> str:
        """The URL in its usual spelling."""
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def endpoint(self) -> str:
        """`host:port`, the pattern of permission rules for private addresses."""
        return f"{add_brackets(self.host)}:{self.port}"

    def find_proxy(self, environment: Mapping[str, str]) -> str | None:
        """Return the URL of the proxy that the environment names for this URL;
        None: connect directly.
        """
        return (
            None
            if is_local_host(self.host)
            else find_proxy(self.scheme, self.host, self.port, environment)
        )

    def to_https(self) -> "WebUrl":
        """Return the same URL over HTTPS."""
        return replace(self, scheme="https", port=DEFAULT_PORTS["https"])


def parse_url(url: str) -> WebUrl:
    """Parse a URL. Raises ToolFailure for schemes other than HTTP(S), for passwords,
    and for ambiguous hosts.
    """
    text = url.strip()
    if len(text) > WEB_URL.value:
        raise ToolFailure(
            f"The URL is longer than {WEB_URL.value} characters.", advice="Give a shorter one."
        )
    # Parsers disagree about these: browsers drop line ends, and read a backslash as a slash.
    if re.search(r"[\x00-\x1f\x7f\\]", text):
        raise _make_failure(text, "it contains control characters or a backslash")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _make_failure(text, str(error)) from None
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        what = f"the scheme {scheme}: can't be fetched" if scheme else "it has no scheme"
        hint = "; use the read tool for a file" if scheme == "file" else ""
        raise _make_failure(text, f"{what}; only http:// and https:// can{hint}")
    if "@" in parts.netloc:
        raise _make_failure(
            text, "it carries a user name or password, which are never sent; leave them out"
        )
    if port == 0:
        raise _make_failure(text, "port 0 can't be connected to")
    raw_host = (
        parts.netloc.rpartition(":")[0] if parts.port is not None else parts.netloc.rstrip(":")
    )
    without_host = WebUrl(
        scheme,
        "",
        port or DEFAULT_PORTS[scheme],
        _escape_target(parts.path, parts.query),
        names_port=port is not None,
    )
    return _set_host(without_host, raw_host, text)


def resolve_redirect(url: WebUrl, location: str) -> WebUrl:
    """Return the URL that a redirect from `url` leads to. Raises ToolFailure."""
    try:
        return parse_url(urljoin(url.url, location.strip()))
    except ValueError as error:
        raise _make_failure(location, str(error)) from None


def _escape_target(path: str, query: str) -> str:
    """Return path and query with unsafe characters escaped; escapes that they have already stay."""
    return quote(path, safe=punctuation) + (f"?{quote(query, safe=punctuation)}" if query else "")


def _set_host(url: WebUrl, raw: str, text: str) -> WebUrl:
    """Return the URL with its host. `raw`: the host as it was written;
    `text`: the whole URL, for errors.
    """
    if raw.startswith("["):
        try:
            ip = IPv6Address(raw[1:-1])
        except ValueError:
            raise _make_failure(text, f"{raw} is not an IPv6 address") from None
        if ip.scope_id is not None:
            raise _make_failure(text, "a zone id is not allowed")
        return replace(
            url,
            host=spell_address(ip),
            is_literal=True,
            is_disguised=ip in ip_network(NAT64_NETWORK),
        )
    host = _convert_to_ascii(raw, text).removesuffix(".")
    # A host whose last label is a number is an IPv4 address to browsers and resolvers,
    # in whatever form.
    if re.fullmatch(_NUMBER, host.rpartition(".")[2]):
        address = str(IPv4Address(_parse_ipv4(host, text)))
        return replace(url, host=address, is_literal=True, is_disguised=raw != address)
    if len(host) > 253 or not re.fullmatch(_HOST_NAME, host):
        raise _make_failure(text, f"{raw!r} is not a host name")
    return replace(url, host=host)


def _convert_to_ascii(raw: str, url: str) -> str:
    """Return a host in ASCII, as browsers look it up."""
    # NFKC turns full-width digits and dots into plain ones, except the ideographic full stop.
    host = normalize("NFKC", raw).replace("\u3002", ".").lower()
    if host.isascii():
        return host
    import httpx2

    try:
        return httpx2.URL(f"https://{host}/").raw_host.decode("ascii")
    except httpx2.InvalidURL:
        raise _make_failure(url, f"{raw!r} is not a host name") from None


def _parse_ipv4(host: str, url: str) -> int:
    """Parse an IPv4 address as resolvers do: one to four numbers, each decimal,
    octal or hexadecimal.

    The last number fills all bytes that the others leave: `127.1` is 127.0.0.1.
    """
    parsed = [_parse_number(part) for part in host.split(".")]
    numbers = [number for number in parsed if number is not None]
    *first, last = numbers or [0]
    last_bits = 8 * (4 - len(first))
    is_valid = (
        len(numbers) == len(parsed) <= 4
        and all(number <= 255 for number in first)
        and last < 1 << last_bits
    )
    if not is_valid:
        raise _make_failure(url, f"{host} is not an IPv4 address")
    return last + sum(number << (24 - 8 * index) for index, number in enumerate(first))


def _parse_number(part: str) -> int | None:
    """Return the value of `10`, `012` (octal) or `0xa`; None: the text is no such number."""
    if not re.fullmatch(_NUMBER, part) or len(part) > 20:
        return None
    try:
        if part.startswith("0x"):
            return int(part[2:] or "0", 16)
        return int(part, 8 if part.startswith("0") and len(part) > 1 else 10)
    except ValueError:
        return None


def _make_failure(url: str, why: str) -> ToolFailure:
    # A failure is shown in terminals, which control characters could change.
    shown = url.encode("unicode_escape").decode()[:200]
    # The part before an @ may be a password.
    if "@" in shown:
        shown = "***@" + shown.rpartition("@")[2]
    return ToolFailure(f"{shown} can't be fetched: {why}.")
