"""The list of hosts that sandboxed commands may reach, and the strict parser of `host:port`. Pure.

The proxy in `host_proxy.py` looks up each connection here;
the user's entries come from the configuration.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

from msgspec import Struct

from codeloop.net.address import classify_non_public, spell_address
from codeloop.net.hosts import add_brackets, is_loopback

WEB_PORTS = frozenset({80, 443})

DEFAULT_HOSTS = (
    (
        "Python",
        "pypi.org",
        "files.pythonhosted.org",
        "download.pytorch.org",
        "conda.anaconda.org",
        "repo.anaconda.com",
    ),
    (
        "Node",
        "registry.npmjs.org",
        "registry.yarnpkg.com",
        "repo.yarnpkg.com",
        "npm.jsr.io",
        "jsr.io",
        "nodejs.org",
    ),
    ("browsers for tests", "cdn.playwright.dev", "download.cypress.io"),
    ("Rust", "index.crates.io", "static.crates.io", "crates.io", "static.rust-lang.org"),
    ("Go", "proxy.golang.org", "sum.golang.org", "dl.google.com"),
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
"""Registries, the hosts they download from, and git hosting, as installing and fetching needs them.

Each row begins with its purpose. A host where anybody can store files without an account of the
registry (storage.googleapis.com) is not listed: a command could send the project's files there.
"""

_HOST_NAME = (
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
_NUMBER_LABEL = r"[0-9]+|0x[0-9a-f]*"
_PORT_NUMBER = r"[1-9][0-9]{0,4}"
# Spellings that programs read in different ways: what is checked here must be what
# the server is asked for.
_FORBIDDEN_SPELLINGS = (
    (r"[^\x21-\x7e]", "a control character, a space or a letter beyond ASCII"),
    ("@", "a user name"),
    ("%", "a percent sign"),
    (r"\.(:|$)", "a dot at its end"),
)
# Some transparent proxies resolve every name to an address of these ranges,
# which nothing else uses.
_PLACEHOLDER_RANGES = frozenset({"reserved for documentation", "reserved for benchmarks"})
_PRIVATE_RANGES = frozenset(
    {
        "private",
        "private (unique local)",
        "private (site-local)",
        "shared by a provider's customers (CGNAT)",
    }
)


class ConnectionBlocked(Exception):
    """A connection was refused. `authority`: the `host:port`, as far as known;
    the text is the reason.
    """

    def __init__(self, authority: str, reason: str) -> None:
        super().__init__(reason)
        self.authority = authority


class HostPort(Struct, frozen=True):
    """The target of a connection. `host`: in lower case;
    `is_literal`: it is an address, as the client spelled it.
    """

    host: str
    port: int
    is_literal: bool = False

    @property
    def authority(self) -> str:
        """`host:port`, as it is written in a URL."""
        return f"{add_brackets(self.host)}:{self.port}"


class HostRule(Struct, frozen=True):
    """One entry of the list. `port`: None for 80 and 443;
    `is_wildcard`: it means all names below `name`, not the name.

    `is_from_user`: the user wrote it, so `name` itself may have a private address.
    `is_refused`: an entry with `!`.
    """

    name: str
    port: int | None = None
    is_wildcard: bool = False
    is_from_user: bool = False
    is_refused: bool = False

    def matches(self, target: HostPort) -> bool:
        """Return whether the entry means the target."""
        if self.is_wildcard:
            is_named = target.host.endswith(f".{self.name}") and not target.is_literal
        else:
            is_named = target.host == self.name
        return is_named and (
            target.port in WEB_PORTS if self.port is None else target.port == self.port
        )

    def explain_refusal(self, address: str) -> str | None:
        """Return why the target's name must not lead to an address; None when it may.

        A public name with a private address is a way into the user's network (DNS rebinding).
        """
        reason = classify_non_public(address)
        if reason in _PLACEHOLDER_RANGES or (
            self.is_from_user and not self.is_wildcard and reason in _PRIVATE_RANGES
        ):
            return None
        return reason


class HostList(Struct, frozen=True):
    """A list of hosts. `service_ports`: ports of the user's machine,
    which commands reach on their own `localhost`.
    """

    rules: tuple[HostRule, ...] = ()
    service_ports: tuple[int, ...] = ()

    def find_rule(self, target: HostPort) -> HostRule:
        """Return the entry that allows the target, the user's own if there is one.

        Raises ConnectionBlocked when no entry allows it, or one with `!` refuses it.
        """
        matching = [rule for rule in self.rules if rule.matches(target)]
        if not matching or any(rule.is_refused for rule in matching):
            reason = (
                "an address where a name is needed"
                if target.is_literal
                else "not among the hosts of the sandbox"
            )
            raise ConnectionBlocked(target.authority, reason)
        # The most permissive entry: a name that the user wrote may have a private address.
        return max(matching, key=lambda rule: (rule.is_from_user, not rule.is_wildcard))


def parse_host_list(entries: Iterable[str], tool_entries: Iterable[str] = ()) -> HostList:
    """Return the list of the default hosts, the configured `entries`,
    and the `tool_entries` from settings of tools.

    An entry is a name, `*.name` (all names below it), or either with `:port`. An entry with `!`
    refuses a host that others allow, and `!*` leaves the default hosts out. `localhost:port` is a
    service of the user's machine.
    Raises ValueError for any other entry.
    """
    configured = list(entries)
    rules = (
        []
        if "!*" in configured
        else [HostRule(name) for _, *names in DEFAULT_HOSTS for name in names]
    )
    rules += [
        _parse_rule(entry) for entry in dict.fromkeys((*tool_entries, *configured)) if entry != "!*"
    ]
    service_ports = tuple(
        rule.port for rule in rules if is_loopback(rule.name) and rule.port and not rule.is_refused
    )
    return HostList(tuple(rule for rule in rules if not is_loopback(rule.name)), service_ports)


def escape_text(text: str) -> str:
    """Escape a client's text, so that no terminal takes it for control sequences;
    at most 100 characters.
    """
    return text.encode("unicode_escape").decode()[:100]


def parse_host_port(text: str, port: int | None = None) -> HostPort:
    """Parse `host:port`; `port`: the default. Raises ConnectionBlocked for any
    but the plain spelling.
    """
    for pattern, reason in _FORBIDDEN_SPELLINGS:
        if re.search(pattern, text):
            raise ConnectionBlocked(escape_text(text), f"the host is spelled with {reason}")
    host, digits = text.lower(), ""
    if ":" in text and not text.endswith("]"):
        host, _, digits = host.rpartition(":")
        if not re.fullmatch(_PORT_NUMBER, digits) or int(digits) > 65_535:
            raise ConnectionBlocked(escape_text(text), "it names no port from 1 to 65535")
        port = int(digits)
    if port is None:
        raise ConnectionBlocked(escape_text(text), "it names no port")
    if host.startswith("["):
        return HostPort(_read_ipv6(host), port, is_literal=True)
    # As in browsers, a name whose last label is a number is an IPv4 address,
    # in whatever spelling (`127.1`, `0x7f`).
    if re.fullmatch(_NUMBER_LABEL, host.rpartition(".")[2]):
        return HostPort(host, port, is_literal=True)
    if not re.fullmatch(_HOST_NAME, host):
        raise ConnectionBlocked(escape_text(text), "it is not the name of a host")
    return HostPort(host, port)


def _read_ipv6(host: str) -> str:
    """Return an address without its brackets, in its one spelling, so that rules find it."""
    try:
        if not host.endswith("]"):
            raise ValueError(host)
        return spell_address(IPv6Address(host[1:-1]))
    except ValueError:
        raise ConnectionBlocked(escape_text(host), "it is not an IPv6 address") from None


def _parse_rule(entry: str) -> HostRule:
    text = entry.strip().removeprefix("!")
    is_wildcard, name = text.startswith("*."), text.removeprefix("*.")
    try:
        target = parse_host_port(name if name.isascii() else name.encode("idna").decode(), 0)
        is_plain = not target.is_literal or (
            not is_wildcard and spell_address(ip_address(target.host)) == target.host
        )
    except (ConnectionBlocked, ValueError):
        target, is_plain = HostPort("", 0), False
    if not is_plain or (is_loopback(target.host) and not target.port):
        raise ValueError(
            f"{entry!r} names no host: write a name (example.com), all names below one (*.example.com), "
            "either with a port (example.com:8080), or a service of this machine (localhost:5432)"
        )
    return HostRule(
        target.host,
        target.port or None,
        is_wildcard,
        is_from_user=True,
        is_refused=entry.strip().startswith("!"),
    )
