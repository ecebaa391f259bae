"""Resolves host names, and classifies addresses as public or not."""

import asyncio
from collections.abc import Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

from codeloop.kit.small_files import read_start

NETWORKS = (
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.100.100.200/32", "a cloud's metadata service"),
    ("100.64.0.0/10", "shared by a provider's customers (CGNAT)"),
    ("127.0.0.0/8", "loopback"),
    ("168.63.129.16/32", "a cloud's metadata service"),
    ("169.254.169.254/32", "a cloud's metadata service"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "reserved for documentation"),
    ("192.88.99.0/24", "a 6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "reserved for benchmarks"),
    ("198.51.100.0/24", "reserved for documentation"),
    ("203.0.113.0/24", "reserved for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "an IPv4 address written as IPv6"),
    ("::/96", "an IPv4 address written as IPv6"),
    ("64:ff9b:1::/48", "translated to a local IPv4 network (NAT64)"),
    ("2001::/23", "reserved or tunnelled (Teredo)"),
    ("2001:db8::/32", "reserved for documentation"),
    ("2002::/16", "an IPv4 address in IPv6 (6to4)"),
    ("3fff::/20", "reserved for documentation"),
    ("fd00:ec2::/32", "a cloud's metadata service"),
    ("fd20:ce::/32", "a cloud's metadata service"),
    ("fc00::/7", "private (unique local)"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private (site-local)"),
    ("ff00::/8", "multicast"),
)
"""Non-public networks and their kinds; the first match counts."""

HOSTS = Path("/etc/hosts")
_HOSTS_BYTES = 1024 * 1024

NAT64 = "64:ff9b::/96"
PUBLIC_V6 = "2000::/3"


def why_not_public(address: str) -> str | None:
    """Return why an address is not public (`loopback`, `private`, ...); None when it is.

    >>> why_not_public("10.1.2.3")
    'private'
    """
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and ip in ip_network(NAT64):
        return why_not_public(str(IPv4Address(int(ip) & 0xFFFFFFFF)))
    kind = next((what for network, what in _networks() if ip.version == network.version and ip in network), None)
    if kind is None and isinstance(ip, IPv6Address) and ip not in ip_network(PUBLIC_V6):
        return "reserved"
    return kind


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, in the system's order. Raises OSError."""
    import socket

    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in addresses))


def has_own_address(host: str, hosts: Path = HOSTS) -> bool:
    """Return whether this machine's hosts file has an address for a host, so that no name server is asked."""
    try:
        text = read_start(hosts, _HOSTS_BYTES).decode(errors="replace").lower()
    except OSError:
        return False
    name = host.lower().rstrip(".")
    return any(name in line.partition("#")[0].split()[1:] for line in text.splitlines())


def same(address: str, port: int) -> tuple[str, int]:
    """Return the address to connect to: the one that was checked."""
    return address, port


@cache
def _networks() -> tuple[tuple[IPv4Network | IPv6Network, str], ...]:
    return tuple((ip_network(text), what) for text, what in NETWORKS)
