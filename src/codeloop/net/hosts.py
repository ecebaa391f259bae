"""Recognises hosts that are this machine, or that offline mode may reach,
and formats hosts for URLs and headers.

Offline mode (`--offline` or `CODELOOP_OFFLINE=1`): only this machine and private
networks are reachable.
"""

import os
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult, urlsplit

from codeloop.kit.text.patterns import compile_once

DEFAULT_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its address or by the name `localhost`.

    Requests to it cross no network. A name that only begins or ends like it
    (`localhost.evil.example`, `127.0.0.1.nip.io`, `app.localhost`) is for a name server to resolve,
    so it doesn't count.
    """
    plain = host.strip("[]").partition("%")[0]
    if plain.lower() == "localhost":
        return True
    try:
        address = ip_address(plain)
    except ValueError:
        return False
    # `::ffff:127.0.0.1` is loopback too, but Python calls it so only since 3.13.
    ipv4 = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (ipv4 or address).is_loopback


def is_local_host(host: str) -> bool:
    """Return whether a host is this machine, by `is_loopback` or by a name below
    `localhost` (RFC 6761).
    """
    return is_loopback(host) or host.lower().endswith(".localhost")


def add_brackets(host: str) -> str:
    """Return a host as it is written in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def find_url_host(url: str) -> str:
    """Return the host of a URL, in lower case; "" if the URL has none or is malformed."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def format_host_header(url: SplitResult) -> str:
    """Return the Host header of requests to a URL: lower case, without user name and default port.

    Signatures of Amazon are computed over it, so what is signed and what is sent
    come from this one function.
    """
    host = add_brackets(url.hostname or "")
    return host if url.port in {None, DEFAULT_PORTS.get(url.scheme)} else f"{host}:{url.port}"


OFFLINE_VARIABLE = "CODELOOP_OFFLINE"
OFFLINE_MESSAGE = f"codeloop is offline (--offline or {OFFLINE_VARIABLE})"
_NUMBER = r"0x[0-9a-f]*|[0-9]+"
_PRIVATE_NAME_ENDINGS = (".local", ".lan", ".internal", ".home.arpa")
"""Endings of names in private networks (RFC 6762, RFC 8375, ICANN's `internal`,
and `lan` of many routers).
"""


def is_offline(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the environment asks for offline mode."""
    return environment.get(OFFLINE_VARIABLE, "").strip().lower() not in {"", "0", "false", "no"}


def is_reachable_offline(host: str) -> bool:
    """Return whether a host is this machine or in a private network, by its address or name.
    Asks no name server.

    A name without a dot counts too: it belongs to this network, such as that of another container.
    """
    from codeloop.net.address import classify_non_public

    # A dot at the end only says that the name is complete.
    plain = host.strip("[]").lower().rstrip(".")
    if is_local_host(plain) or plain.endswith(_PRIVATE_NAME_ENDINGS):
        return True
    try:
        address = ip_address(plain.partition("%")[0])
        ipv4 = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return classify_non_public(str(ipv4 or address)) is not None
    except ValueError:
        # A number, such as 134744072, is an address to the system: that is not a name.
        return "." not in plain and not compile_once(_NUMBER).fullmatch(plain)


def require_reachable(host: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raise NetworkError("offline") for a host that must not be reached in offline mode."""
    if is_offline(environment) and not is_reachable_offline(host):
        # Imported late: most runs are not offline.
        from codeloop.net.errors import NetworkError

        raise NetworkError("offline", OFFLINE_MESSAGE)
