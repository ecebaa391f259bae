"""Which hosts are this machine, and how hosts are written in URLs. Pure."""

from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult

DEFAULT_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its address or by the name `localhost`.

    Requests to it cross no network. A name that only begins or ends like it (`localhost.evil.example`,
    `127.0.0.1.nip.io`, `app.localhost`) is for a name server to resolve, so it doesn't count.
    """
    plain = host.strip("[]").partition("%")[0]
    if plain.lower() == "localhost":
        return True
    try:
        address = ip_address(plain)
    except ValueError:
        return False
    ipv4 = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (ipv4 or address).is_loopback


def is_local_name(host: str) -> bool:
    """Return whether a host is `is_loopback`, or a name below `localhost`, which no proxy can reach either."""
    return is_loopback(host) or host.lower().endswith(".localhost")


def add_brackets(host: str) -> str:
    """Return a host as it is written in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def host_header(url: SplitResult) -> str:
    """Return the Host header of requests to a URL: lower case, without a user's name and without the usual port."""
    host = add_brackets(url.hostname or "")
    return host if url.port in {None, DEFAULT_PORTS.get(url.scheme)} else f"{host}:{url.port}"
