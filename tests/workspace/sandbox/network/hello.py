"""First messages of TLS clients, for tests of who is let through."""

import ssl
from contextlib import suppress

OTHERS = (
    b"\x00\x17\x00\x00",  # extended master secret: an extension before
    b"\x00\x2b\x00\x03\x02\x03\x04",  # supported versions: one after
)


def hello(name: str | None) -> bytes:
    """Return what Python's own TLS sends first to ask for a server."""
    context, incoming, outgoing = ssl.create_default_context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    context.check_hostname = False
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def extension(kind: int, body: bytes) -> bytes:
    return kind.to_bytes(2, "big") + len(body).to_bytes(2, "big") + body


def names(*hosts: bytes, kind: int = 0) -> bytes:
    """Return the extension that names servers."""
    rows = b"".join(bytes((kind,)) + len(host).to_bytes(2, "big") + host for host in hosts)
    return extension(0, len(rows).to_bytes(2, "big") + rows)


def made(*extensions: bytes, kind: int = 1, after: bytes = b"") -> bytes:
    """Return a message with these extensions, in a record of its own."""
    listed = b"".join((OTHERS[0], *extensions, OTHERS[1]))
    body = (
        b"\x03\x03"
        + bytes(32)
        + b"\x00"
        + b"\x00\x02\x13\x01"
        + b"\x01\x00"
        + len(listed).to_bytes(2, "big")
        + listed
    )
    message = bytes((kind,)) + len(body).to_bytes(3, "big") + body + after
    return record(message)


def record(message: bytes) -> bytes:
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


def split(data: bytes, size: int) -> bytes:
    """Return a message of one record in records of at most `size` bytes."""
    message = data[5:]
    return b"".join(record(message[at : at + size]) for at in range(0, len(message), size))
