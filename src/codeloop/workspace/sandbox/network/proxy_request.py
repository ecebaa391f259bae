"""Strict parsers of what a proxy client sends: the head of a request, and the first message of TLS. Pure."""

import re
from collections.abc import Iterator

from msgspec import Struct

from codeloop.net.hosts import add_brackets
from codeloop.schema.limits import PROXY_HEADERS, PROXY_HELLO
from codeloop.workspace.sandbox.network.hosts import Blocked, HostPort, escape_text, read_host_port

_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) HTTP/1\.([01])")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_ABSOLUTE = re.compile(r"http://([^/?#]*)(/[^#]*|\?[^#]*)?", re.IGNORECASE)
_LENGTH = re.compile(r"[0-9]{1,18}")
# What concerns one connection only, or would keep it open for requests that nobody has looked at.
_HOP_BY_HOP = frozenset(
    {"connection", "host", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "upgrade"}
)

_FRAMING = frozenset({"content-length", "transfer-encoding"})

_HANDSHAKE_RECORD, _MAX_RECORDS = bytes((22, 3)), 16  # the type of a TLS record and the major version
_CLIENT_HELLO, _SERVER_NAME, _ENCRYPTED_HELLO = 1, 0, 0xFE0D


class ProxyRequest(Struct, frozen=True):
    """One request. `head`: as it is sent to the server, b"" for CONNECT; `length`: of the body, None: in chunks."""

    target: HostPort
    head: bytes = b""
    length: int | None = 0

    @property
    def is_tunnel(self) -> bool:
        """Whether it is a CONNECT."""
        return not self.head


def read_request(data: bytes) -> ProxyRequest:
    """Parse a head up to its empty line. Raises Blocked when it is ambiguous or names two targets."""
    first, *lines = data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    parts = _LINE.fullmatch(first)
    if parts is None:
        raise Blocked("a server", "the request's first line is not HTTP/1.1")
    method, where, minor = parts.groups()
    if method.upper() == "CONNECT":
        target, path = read_host_port(where), ""
    else:
        absolute = _ABSOLUTE.fullmatch(where)
        if absolute is None:
            what = "HTTPS goes through CONNECT" if where.lower().startswith("https:") else "it is not an http:// URL"
            raise Blocked(escape_text(where), what)
        target, path = read_host_port(absolute[1], 80), absolute[2] or "/"
    headers = _read_headers(lines, target)
    hosts = [value for name, value in headers if name.lower() == "host"]
    if len(hosts) > 1 or any(not _names_target(host, target) for host in hosts):
        raise Blocked(target.authority, f"the header Host names another host: {escape_text(', '.join(hosts))}")
    length = _read_body_length(headers, target, minor)
    if not path:
        return ProxyRequest(target)
    host = add_brackets(target.host) if target.port == 80 else target.authority
    sent = [f"{method} {'/' if path.startswith('?') else ''}{path} HTTP/1.1", f"Host: {host}", "Connection: close"]
    hop_by_hop = {
        each.strip().lower() for name, value in headers if name.lower() == "connection" for each in value.split(",")
    }
    sent += [f"{name}: {value}" for name, value in headers if name.lower() not in _HOP_BY_HOP | hop_by_hop - _FRAMING]
    return ProxyRequest(target, "\r\n".join((*sent, "", "")).encode("latin-1"), length)


def _read_headers(lines: list[str], target: HostPort) -> list[tuple[str, str]]:
    matches = [_HEADER.fullmatch(line) for line in lines]
    if len(lines) > PROXY_HEADERS.value:
        raise Blocked(target.authority, f"the request has more than {PROXY_HEADERS.value} headers")
    if None in matches:
        raise Blocked(target.authority, "a header of the request is malformed")
    return [(header[1], header[2].strip()) for header in matches if header is not None]


def _read_body_length(headers: list[tuple[str, str]], target: HostPort, minor: str) -> int | None:
    """Return the length of the body, None for chunks."""
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    codings = [value for name, value in headers if name.lower() == "transfer-encoding"]
    # Two lengths could be read differently by the server: a second request would pass unchecked within the body.
    if len(lengths) + len(codings) > 1:
        raise Blocked(target.authority, "the request gives the length of its body twice")
    if codings and (codings[0].lower() != "chunked" or minor == "0"):
        raise Blocked(target.authority, "the request's body has an encoding other than chunked")
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise Blocked(target.authority, "the length of the request's body is not a number")
    return None if codings else int(lengths[0]) if lengths else 0


def _names_target(host: str, target: HostPort) -> bool:
    """Return whether a header `Host` names the target; it may leave the port out."""
    try:
        return read_host_port(host, target.port) == target
    except Blocked:
        return False


def is_greeting(data: bytes, target: HostPort) -> bool:
    """Return whether the first message of a TLS client is complete; then it asks for the target and no other server.

    Raises Blocked when it is not TLS, names another server, none or several, or hides which (Encrypted Client Hello).
    """
    hello = _read_client_hello(data, target)
    if hello is None:
        return False
    try:
        extensions = list(_list_extensions(hello))
    except ValueError:
        raise Blocked(target.authority, "its first TLS message is malformed") from None
    if any(kind == _ENCRYPTED_HELLO for kind, _ in extensions):
        raise Blocked(target.authority, "TLS hides which server it asks for (Encrypted Client Hello)")
    names = [body for kind, body in extensions if kind == _SERVER_NAME]
    if target.literal and not names:
        return True  # TLS has no server name for an address
    # The list's length, a zero for "host name", the name's length, the name: one name, and nothing after it.
    if len(names) != 1 or names[0][:5] != _make_prefix(len(names[0])):
        raise Blocked(target.authority, "TLS does not name one server")
    name = names[0][5:].decode("latin-1")
    if name.lower() != target.host:
        raise Blocked(target.authority, f"TLS asks for another server: {escape_text(name)}")
    return True


def _make_prefix(size: int) -> bytes:
    return max(size - 2, 0).to_bytes(2, "big") + b"\0" + max(size - 5, 0).to_bytes(2, "big")


def _read_client_hello(data: bytes, target: HostPort) -> bytes | None:
    """Return the body of the ClientHello, from one record or a few; None while it is not complete."""
    message, at = b"", 0
    for _ in range(_MAX_RECORDS):
        head = data[at : at + 5]
        size = int.from_bytes(head[3:5], "big")
        if not _HANDSHAKE_RECORD.startswith(head[:2]) or (len(head) == 5 and not 0 < size <= 1 << 14):
            raise Blocked(target.authority, "what is sent through it is not TLS")
        if len(head) < 5 or len(data) < at + 5 + size:
            break
        message, at = message + data[at + 5 : at + 5 + size], at + 5 + size
        if message[0] != _CLIENT_HELLO:
            raise Blocked(target.authority, "what is sent through it does not begin as TLS does")
        length = 4 + int.from_bytes(message[1:4], "big")
        if len(message) >= max(length, 4):
            return message[4:]
    else:
        raise Blocked(target.authority, f"its first TLS message comes in more than {_MAX_RECORDS} records")
    if len(data) > PROXY_HELLO.value:
        raise Blocked(target.authority, f"its first TLS message is longer than {PROXY_HELLO.value} bytes")
    return None


def _list_extensions(hello: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kind and body of each extension. Raises ValueError where the lengths do not add up."""
    at = 2 + 32  # version and random
    for width in (1, 2, 1):  # session id, cipher suites, compression methods
        at += width + _read_number(hello, at, width)
    end = at + 2 + _read_number(hello, at, 2)
    at += 2
    if end != len(hello):
        raise ValueError
    while at < end:
        size = _read_number(hello, at + 2, 2)
        if at + 4 + size > end:
            raise ValueError
        yield _read_number(hello, at, 2), hello[at + 4 : at + 4 + size]
        at += 4 + size


def _read_number(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise ValueError
    return int.from_bytes(data[at : at + width], "big")
