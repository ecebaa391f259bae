"""Strict parsers of a proxy client's input: the head of an HTTP request,
and the first message of TLS. Pure.

Whatever another server could read in a different way is refused, so that a check here holds there,
too.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from codeloop.net.hosts import add_brackets
from codeloop.schema.limits import PROXY_HEADERS, PROXY_HELLO
from codeloop.workspace.sandbox.network.host_list import (
    ConnectionBlocked,
    HostPort,
    escape_text,
    parse_host_port,
)

_REQUEST_LINE = r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) HTTP/1\.([01])"
_HEADER_LINE = r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)"
_ABSOLUTE_URL = r"(?i)http://([^/?#]*)(/[^#]*|\?[^#]*)?"
_BODY_LENGTH = r"[0-9]{1,18}"
# Headers that concern one connection only, or would keep it open for further requests,
# which nobody has checked.
_HOP_BY_HOP_HEADERS = frozenset(
    {
        "connection",
        "host",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "te",
        "trailer",
        "upgrade",
    }
)
# Never dropped, even if `Connection` lists them: the body would be read as a second request.
_FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding"})
# The type of a TLS record and its major version.
_HANDSHAKE_RECORD = bytes((22, 3))
# A client may split its first message over records; a usual one needs a few at most.
_MAX_RECORDS = 16
# The type of a handshake message, and the types of two extensions.
_CLIENT_HELLO, _SERVER_NAME, _ENCRYPTED_HELLO = 1, 0, 0xFE0D


class ProxyRequest(Struct, frozen=True):
    """One request. `head`: as it is sent to the server, b"" for CONNECT;
    `length`: of the body, None for chunks.
    """

    target: HostPort
    head: bytes = b""
    length: int | None = 0

    @property
    def is_tunnel(self) -> bool:
        """Whether it is a CONNECT."""
        return not self.head


def parse_request(data: bytes) -> ProxyRequest:
    """Parse the head of a request with its empty line.
    Raises ConnectionBlocked for an ambiguous one or two targets.
    """
    first, *lines = data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    parts = re.fullmatch(_REQUEST_LINE, first)
    if parts is None:
        raise ConnectionBlocked("a server", "the request's first line is not HTTP/1.1")
    method, address, minor_version = parts.groups()
    if method.upper() == "CONNECT":
        target, path = parse_host_port(address), ""
    else:
        absolute = re.fullmatch(_ABSOLUTE_URL, address)
        if absolute is None:
            is_https = address.lower().startswith("https:")
            reason = "HTTPS goes through CONNECT" if is_https else "it is not an http:// URL"
            raise ConnectionBlocked(escape_text(address), reason)
        target, path = parse_host_port(absolute[1], 80), absolute[2] or "/"
    headers = _read_headers(lines, target)
    hosts = [value for name, value in headers if name.lower() == "host"]
    if len(hosts) > 1 or any(not _names_target(host, target) for host in hosts):
        raise ConnectionBlocked(
            target.authority, f"the header Host names another host: {escape_text(', '.join(hosts))}"
        )
    length = _read_body_length(headers, target, minor_version)
    if not path:
        return ProxyRequest(target)
    host = add_brackets(target.host) if target.port == 80 else target.authority
    sent = [
        f"{method} {'/' if path.startswith('?') else ''}{path} HTTP/1.1",
        f"Host: {host}",
        "Connection: close",
    ]
    connection_headers = {
        each.strip().lower()
        for name, value in headers
        if name.lower() == "connection"
        for each in value.split(",")
    }
    sent += [
        f"{name}: {value}"
        for name, value in headers
        if name.lower() not in _HOP_BY_HOP_HEADERS | connection_headers - _FRAMING_HEADERS
    ]
    return ProxyRequest(target, "\r\n".join((*sent, "", "")).encode("latin-1"), length)


def _read_headers(lines: list[str], target: HostPort) -> list[tuple[str, str]]:
    matches = [re.fullmatch(_HEADER_LINE, line) for line in lines]
    if len(lines) > PROXY_HEADERS.value:
        raise ConnectionBlocked(
            target.authority, f"the request has more than {PROXY_HEADERS.value} headers"
        )
    if None in matches:
        raise ConnectionBlocked(target.authority, "a header of the request is malformed")
    return [(header[1], header[2].strip()) for header in matches if header is not None]


def _read_body_length(
    headers: list[tuple[str, str]], target: HostPort, minor_version: str
) -> int | None:
    """Return the length of the body in bytes; None for chunks.
    `minor_version`: "0" for HTTP/1.0, or "1".
    """
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    codings = [value for name, value in headers if name.lower() == "transfer-encoding"]
    # Two lengths could be read differently by the server: a second request would pass
    # unchecked within the body.
    if len(lengths) + len(codings) > 1:
        raise ConnectionBlocked(target.authority, "the request gives the length of its body twice")
    if codings and (codings[0].lower() != "chunked" or minor_version == "0"):
        raise ConnectionBlocked(
            target.authority, "the request's body has an encoding other than chunked"
        )
    if lengths and not re.fullmatch(_BODY_LENGTH, lengths[0]):
        raise ConnectionBlocked(
            target.authority, "the length of the request's body is not a number"
        )
    if codings:
        return None
    return int(lengths[0]) if lengths else 0


def _names_target(host: str, target: HostPort) -> bool:
    """Return whether the value of a header `Host` names the target; its port may be omitted."""
    try:
        return parse_host_port(host, target.port) == target
    except ConnectionBlocked:
        return False


def check_client_hello(data: bytes, target: HostPort) -> bool:
    """Check that the first message of a TLS client names the target only;
    return False while it is incomplete.

    It prevents domain fronting: that a client reaches another site of the target's server. Raises
    ConnectionBlocked when the message is not TLS, names another server, none or several, or hides
    the name (Encrypted Client Hello). For an address it may name none.
    """
    hello = _read_client_hello(data, target)
    if hello is None:
        return False
    try:
        extensions = list(_list_extensions(hello))
    except ValueError:
        raise ConnectionBlocked(target.authority, "its first TLS message is malformed") from None
    if any(kind == _ENCRYPTED_HELLO for kind, _ in extensions):
        raise ConnectionBlocked(
            target.authority, "TLS hides which server it asks for (Encrypted Client Hello)"
        )
    names = [body for kind, body in extensions if kind == _SERVER_NAME]
    if target.is_literal and not names:
        # TLS has no server name for an address.
        return True
    # The list's length, a zero for "host name", the name's length, the name: one name,
    # and nothing after it.
    if len(names) != 1 or names[0][:5] != _make_prefix(len(names[0])):
        raise ConnectionBlocked(target.authority, "TLS does not name one server")
    name = names[0][5:].decode("latin-1")
    if name.lower() != target.host:
        raise ConnectionBlocked(
            target.authority, f"TLS asks for another server: {escape_text(name)}"
        )
    return True


def _make_prefix(size: int) -> bytes:
    """Return the bytes before the only name in a server name extension of this size."""
    return max(size - 2, 0).to_bytes(2, "big") + b"\0" + max(size - 5, 0).to_bytes(2, "big")


def _read_client_hello(data: bytes, target: HostPort) -> bytes | None:
    """Return the body of the ClientHello, from one record or a few;
    None while it is not complete.
    """
    message, offset = b"", 0
    for _ in range(_MAX_RECORDS):
        head = data[offset : offset + 5]
        size = int.from_bytes(head[3:5], "big")
        if not _HANDSHAKE_RECORD.startswith(head[:2]) or (
            len(head) == 5 and not 0 < size <= 1 << 14
        ):
            raise ConnectionBlocked(target.authority, "what is sent through it is not TLS")
        if len(head) < 5 or len(data) < offset + 5 + size:
            break
        message, offset = message + data[offset + 5 : offset + 5 + size], offset + 5 + size
        if message[0] != _CLIENT_HELLO:
            raise ConnectionBlocked(target.authority, "the first bytes are not a TLS handshake")
        length = 4 + int.from_bytes(message[1:4], "big")
        if len(message) >= max(length, 4):
            return message[4:]
    else:
        raise ConnectionBlocked(
            target.authority, f"its first TLS message comes in more than {_MAX_RECORDS} records"
        )
    if len(data) > PROXY_HELLO.value:
        raise ConnectionBlocked(
            target.authority, f"its first TLS message is longer than {PROXY_HELLO.value} bytes"
        )
    return None


def _list_extensions(hello: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the type and body of each extension.
    Raises ValueError where the lengths do not add up.
    """
    # The version (2 bytes) and random bytes (32).
    offset = 2 + 32
    # The widths of the lengths of the session id, the cipher suites and the compression methods.
    for width in (1, 2, 1):
        offset += width + _read_integer(hello, offset, width)
    end = offset + 2 + _read_integer(hello, offset, 2)
    offset += 2
    if end != len(hello):
        raise ValueError
    while offset < end:
        size = _read_integer(hello, offset + 2, 2)
        if offset + 4 + size > end:
            raise ValueError
        yield _read_integer(hello, offset, 2), hello[offset + 4 : offset + 4 + size]
        offset += 4 + size


def _read_integer(data: bytes, offset: int, width: int) -> int:
    if offset + width > len(data):
        raise ValueError
    return int.from_bytes(data[offset : offset + width], "big")
