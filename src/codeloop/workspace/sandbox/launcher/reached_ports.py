"""Tells a client outside of a network namespace which ports are listened on inside,
and connects it to them.

A socket stays in the namespace in which it was made, so the client gets connected sockets,
and nothing more.
"""

import sys
from _socket import AF_INET, AF_INET6, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

from codeloop.workspace.sandbox.launcher.messages import LIST_PORTS, PORT_BYTES
from codeloop.workspace.sandbox.launcher.suppress import Suppress

# The state of a listening socket in /proc/net/tcp, and the addresses that loopback reaches,
# as they are written there.
_LISTENING = "0A"
_TABLES = {
    "/proc/self/net/tcp": ("0100007F", "00000000"),
    "/proc/self/net/tcp6": ("0" * 24 + "01000000", "0" * 32, "0000000000000000FFFF00000100007F"),
}
_LOOPBACK = ((AF_INET, "127.0.0.1"), (AF_INET6, "::1"))
_CONNECT_SECONDS = 5.0
# A client reads the answer in one piece.
_MAX_PORTS = 128


def serve_ports(channel: socket) -> None:
    """Answer requests until the client is gone: `LIST_PORTS` by the ports,
    a port by a socket connected to it.
    """
    while request := channel.recv(PORT_BYTES):
        if request == LIST_PORTS:
            channel.sendall((" ".join(map(str, list_ports())) + "\n").encode())
            continue
        connected = _connect(int(request))
        if connected is None:
            channel.sendall(b"-")
            continue
        rights = connected.fileno().to_bytes(4, sys.byteorder)
        channel.sendmsg([b"+"], [(SOL_SOCKET, SCM_RIGHTS, rights)])
        connected.close()


def list_ports() -> list[int]:
    """Return the ports on which something listens that loopback reaches,
    in the namespace of this process.
    """
    ports: set[int] = set()
    for table, addresses in _TABLES.items():
        with Suppress(OSError), open(table, "rb") as file:
            for row in file.read().decode().splitlines()[1:]:
                _, local, _, state, *_ = row.split()
                address, _, port = local.partition(":")
                if state == _LISTENING and address in addresses:
                    ports.add(int(port, 16))
    return sorted(ports)[:_MAX_PORTS]


def _connect(port: int) -> socket | None:
    """Return a socket that is connected to a port on loopback;
    None: nothing takes the connection.
    """
    for family, address in _LOOPBACK:
        connection = socket(family, SOCK_STREAM)
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect((address, port))
        except OSError:
            connection.close()
            continue
        connection.settimeout(None)
        return connection
    return None
