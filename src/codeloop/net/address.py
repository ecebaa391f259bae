"""Resolves host names, and classifies addresses as public or not.

The web tools and the sandbox's proxy use it, so that a model can't reach this machine or its
network by a URL (server-side request forgery); offline mode, to know what is not on the internet.
"""

import asyncio
from collections.abc import Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

from codeloop.kit.small_files import read_start

# `ipaddress.is_global` is not used: its answers differ between versions of Python,
# and it has no names for the kinds.
NON_PUBLIC_NETWORKS = (
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    # Alibaba Cloud.
    ("100.100.100.200/32", "a cloud's metadata service"),
    ("100.64.0.0/10", "shared by a provider's customers (CGNAT)"),
    ("127.0.0.0/8", "loopback"),
    # Azure's internal services.
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
    # AWS, then Google Cloud.
    ("fd00:ec2::/32", "a cloud's metadata service"),
    ("fd20:ce::/32", "a cloud's metadata service"),
    ("fc00::/7", "private (unique local)"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private (site-local)"),
    ("ff00::/8", "multicast"),
)
"""Non-public networks and their kinds; the first match counts,
so addresses precede the networks that contain them.
"""

HOSTS_FILE = Path("/etc/hosts")
# Lists that block advertisements make this file large; what comes after this size is not read.
_MAX_HOSTS_FILE_BYTES = 1024 * 1024

# An IPv6-only network reaches every IPv4 address through this prefix, private ones too (RFC 6052).
NAT64_NETWORK = "64:ff9b::/96"
# The only part of IPv6 from which public addresses are assigned so far (RFC 4291, IANA).
PUBLIC_IPV6_NETWORK = "2000::/3"


def spell_address(ip: IPv4Address | IPv6Address) -> str:
    """Return the one spelling of an address that hosts, questions and rules have,
    on every version of Python.

    An IPv4 address written as IPv6 stays hexadecimal (`::ffff:7f00:1`);
    since 3.13 Python writes `::ffff:127.0.0.1`.
    """
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return str(ip) if mapped is None else f"::ffff:{int(mapped) >> 16:x}:{int(mapped) & 0xFFFF:x}"


def classify_non_public(address: str) -> str | None:
    """Return the kind of an address that is not public, such as `loopback` or `private`;
    None for a public one.

    Raises ValueError for a text that is not an address.

    >>> classify_non_public("10.1.2.3")
    'private'
    """
    # An address of a link may name its interface: `fe80::1%eth0`.
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and ip in ip_network(NAT64_NETWORK):
        return classify_non_public(str(IPv4Address(int(ip) & 0xFFFFFFFF)))
    kind = next(
        (
            kind
            for network, kind in _parse_networks()
            if ip.version == network.version and ip in network
        ),
        None,
    )
    if kind is None and isinstance(ip, IPv6Address) and ip not in ip_network(PUBLIC_IPV6_NETWORK):
        return "reserved"
    return kind


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, in the system's order. Raises OSError."""
    import socket

    # One row for each kind of socket: the same address can come more than once.
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in addresses))


def is_in_hosts_file(host: str, hosts: Path = HOSTS_FILE) -> bool:
    """Return whether this machine's hosts file has an address for a host,
    so that no name server is asked.
    """
    try:
        text = read_start(hosts, _MAX_HOSTS_FILE_BYTES).decode(errors="replace").lower()
    except OSError:
        return False
    name = host.lower().rstrip(".")
    return any(name in line.partition("#")[0].split()[1:] for line in text.splitlines())


def keep_address(address: str, port: int) -> tuple[str, int]:
    """Return a checked address as it is: the default of callers that let tests
    lead connections elsewhere.
    """
    return address, port


@cache
def _parse_networks() -> tuple[tuple[IPv4Network | IPv6Network, str], ...]:
    return tuple((ip_network(network), kind) for network, kind in NON_PUBLIC_NETWORKS)
