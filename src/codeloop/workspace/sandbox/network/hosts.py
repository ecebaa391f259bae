"""The allow-list of hosts for sandboxed commands, and the strict parser of host names. Pure."""

import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

from msgspec import Struct

from codeloop.net.address import classify_non_public
from codeloop.net.hosts import add_brackets, is_loopback

PORTS = frozenset({80, 443})

DEFAULT_HOSTS = (
    ("Python", "pypi.org", "files.pythonhosted.org", "download.pytorch.org", "conda.anaconda.org", "repo.anaconda.com"),
    ("Node", "registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com", "npm.jsr.io", "jsr.io", "nodejs.org"),
    ("browsers for tests", "cdn.playwright.dev", "download.cypress.io"),
    ("Rust", "index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org"),
    ("Go", "proxy.golang.org", "sum.golang.org", "go.dev", "dl.google.com"),
    ("Ruby", "rubygems.org", "index.rubygems.org"),
    ("Java", "repo.maven.apache.org", "repo1.maven.org", "maven.google.com", "plugins.gradle.org"),
    ("Gradle", "services.gradle.org", "downloads.gradle.org", "plugins-artifacts.gradle.org"),
    (".NET", "api.nuget.org"),
    ("PHP", "packagist.org", "repo.packagist.org"),
    ("Erlang and Elixir", "repo.hex.pm", "builds.hex.pm"),
    ("Dart", "pub.dev"),
    ("GitHub", "github.com", "codeload.github.com", "raw.githubusercontent.com"),
    ("GitHub's releases", "objects.githubusercontent.com", "release-assets.githubusercontent.com"),
    ("other git hosting", "gitlab.com", "bitbucket.org", "codeberg.org", "git.sr.ht"),
)
"""Registries, the places they download from, and git hosting: what installing and fetching takes, each row after its
purpose. A host where anybody can store files without an account of the registry (storage.googleapis.com) is none."""

_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_TRICKS = (
    (re.compile(r"[^\x21-\x7e]"), "a control character, a space or a letter beyond ASCII"),
    (re.compile("@"), "a user name"),
    (re.compile("%"), "a percent sign"),
    (re.compile(r"\.(:|$)"), "a dot at its end"),
)
# Some transparent proxies resolve every name to an address of these ranges, which nothing else uses.
_PLACEHOLDER_RANGES = frozenset({"reserved for documentation", "reserved for benchmarks"})
_PRIVATE = frozenset(
    {"private", "private (unique local)", "private (site-local)", "shared by a provider's customers (CGNAT)"}
)


class Blocked(Exception):
    """A refused connection. `authority`: the `host:port`, as far as known; the text says why."""

    def __init__(self, authority: str, why: str) -> None:
        super().__init__(why)
        self.authority = authority


class HostPort(Struct, frozen=True):
    """The target of a connection. `host`: lower-case; `literal`: it is an address as the client spelled it."""

    host: str
    port: int
    literal: bool = False

    @property
    def authority(self) -> str:
        """`host:port`, as it is written in a URL."""
        return f"{add_brackets(self.host)}:{self.port}"


class HostRule(Struct, frozen=True):
    """One entry of the list. `port`: None for 80 and 443; `below`: what is below the name, not the name itself.

    `own`: the user wrote it, so the name itself may have a private address. `is_refused`: an entry with `!`.
    """

    name: str
    port: int | None = None
    below: bool = False
    own: bool = False
    is_refused: bool = False

    def fits(self, target: HostPort) -> bool:
        """Return whether the entry names the target."""
        is_named = (
            target.host.endswith(f".{self.name}") and not target.literal if self.below else target.host == self.name
        )
        return is_named and (target.port in PORTS if self.port is None else target.port == self.port)

    def why_refused(self, address: str) -> str | None:
        """Return why the target's name must not lead to an address; None when it may."""
        what = classify_non_public(address)
        if what in _PLACEHOLDER_RANGES or (self.own and not self.below and what in _PRIVATE):
            return None
        return what


class Hosts(Struct, frozen=True):
    """A list of hosts. `services`: ports of the user's own machine, which commands reach as their own `localhost`."""

    rules: tuple[HostRule, ...] = ()
    services: tuple[int, ...] = ()

    def find_rule(self, target: HostPort) -> HostRule:
        """Return the entry that allows the target, the user's own if there is one. Raises Blocked."""
        fitting = [rule for rule in self.rules if rule.fits(target)]
        if not fitting or any(rule.is_refused for rule in fitting):
            what = "an address where a name is needed" if target.literal else "not among the hosts of the sandbox"
            raise Blocked(target.authority, what)
        # The entry that allows most: a name that the user wrote may have a private address.
        return max(fitting, key=lambda rule: (rule.own, not rule.below))


def read_hosts(entries: Iterable[str], also: Iterable[str] = ()) -> Hosts:
    """Return the list of the default hosts and the user's: `entries` as configured, `also` from the user's tools.

    An entry is a name, `*.name` (all names below it), or either with `:port`; with `!` it is refused, whatever else
    names it, and `!*` leaves the default hosts out. `localhost:port` is a service of the user's machine.
    Raises ValueError for an entry that is none of these.
    """
    own = list(entries)
    rules = [] if "!*" in own else [HostRule(name) for _, *names in DEFAULT_HOSTS for name in names]
    rules += [_read_rule(entry) for entry in dict.fromkeys((*also, *own)) if entry != "!*"]
    services = tuple(rule.port for rule in rules if is_loopback(rule.name) and rule.port and not rule.is_refused)
    return Hosts(tuple(rule for rule in rules if not is_loopback(rule.name)), services)


def escape_text(text: str) -> str:
    """Escape text of a client, so that no terminal obeys it; at most 100 characters."""
    return text.encode("unicode_escape").decode()[:100]


def read_host_port(text: str, port: int | None = None) -> HostPort:
    """Read `host:port`; `port`: what counts where none is given. Raises Blocked for any but the plain spelling."""
    for trick, what in _TRICKS:
        if trick.search(text):
            raise Blocked(escape_text(text), f"the host is spelled with {what}")
    host, digits = text.lower(), ""
    if ":" in text and not text.endswith("]"):
        host, _, digits = host.rpartition(":")
        if not _PORT.fullmatch(digits) or int(digits) > 65_535:
            raise Blocked(escape_text(text), "it names no port from 1 to 65535")
        port = int(digits)
    if port is None:
        raise Blocked(escape_text(text), "it names no port")
    if host.startswith("["):
        return HostPort(_read_ipv6(host), port, literal=True)
    # As browsers judge: a last label that is a number makes it an IPv4 address, in whatever spelling (`127.1`, `0x7f`).
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return HostPort(host, port, literal=True)
    if not _NAME.fullmatch(host):
        raise Blocked(escape_text(text), "it is not the name of a host")
    return HostPort(host, port)


def _read_ipv6(host: str) -> str:
    """Return an address without its brackets, as it was spelled."""
    try:
        if not host.endswith("]"):
            raise ValueError(host)
        IPv6Address(host[1:-1])
    except ValueError:
        raise Blocked(escape_text(host), "it is not an IPv6 address") from None
    return host[1:-1]


def _read_rule(entry: str) -> HostRule:
    text = entry.strip().removeprefix("!")
    below, name = text.startswith("*."), text.removeprefix("*.")
    try:
        target = read_host_port(name if name.isascii() else name.encode("idna").decode(), 0)
        is_plain = not target.literal or (not below and str(ip_address(target.host)) == target.host)
    except (Blocked, ValueError):
        target, is_plain = HostPort("", 0), False
    if not is_plain or (is_loopback(target.host) and not target.port):
        raise ValueError(
            f"{entry!r} names no host: write a name (example.com), all names below one (*.example.com), "
            "either with a port (example.com:8080), or a service of this machine (localhost:5432)"
        )
    return HostRule(target.host, target.port or None, below, own=True, is_refused=entry.strip().startswith("!"))
