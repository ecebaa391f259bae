"""Sends small requests to a model server on this machine.

It speaks HTTP/1.0 over plain sockets: a start without any configured model waits for it, and
importing an HTTP client would take longer than the servers' answers.
"""

import re
from urllib.parse import urlsplit

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.net.hosts import add_brackets
from codeloop.schema.limits import DISCOVER_BYTES
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json

_CONTENT_LENGTH = rb"(?i)\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*(?:\r|$)"


async def request_json(url: str, body: JSON | None, seconds: float) -> JSON:
    """Send a GET, or a POST of `body`, to a server on this machine;
    return the JSON object that it answers.

    Empty without such an answer in time.
    """
    import asyncio

    try:
        async with asyncio.timeout(seconds):
            answer = await send_request(url, body)
    except TimeoutError:
        return {}
    try:
        data = decode_json(extract_body(answer or b""))
    except DECODE_ERRORS:
        return {}
    return data if is_object(data) else {}


async def send_request(url: str, body: JSON | None) -> bytes | None:
    """Send one request, and return the whole answer; None: no connection, or too long an answer."""
    import asyncio

    parts = urlsplit(url)
    data = b"" if body is None else msgspec.json.encode(body)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return None
    try:
        # HTTP/1.0: the answer comes in one piece without chunks,
        # and the server closes the connection after it.
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        head = f"{'GET' if body is None else 'POST'} {target} HTTP/1.0\r\nHost: {add_brackets(host)}:{port}\r\n"
        head += "Accept: application/json\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        writer.write(f"{head}\r\n".encode() + data)
        answer = bytearray()
        while chunk := await reader.read(65_536):
            answer += chunk
            if len(answer) > DISCOVER_BYTES.value:
                return None
            if _has_complete_body(answer):
                break
    except OSError:
        return None
    finally:
        writer.close()
    return bytes(answer)


def extract_body(answer: bytes) -> bytes:
    """Return the body of a 200; empty for any other answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].split(b" ")
    return body if head.startswith(b"HTTP/1.") and len(status) > 1 and status[1] == b"200" else b""


def _has_complete_body(answer: bytearray) -> bool:
    """Return whether the body is complete by its `content-length`: some servers keep
    the connection open even so.
    """
    head, blank, body = answer.partition(b"\r\n\r\n")
    length = re.search(_CONTENT_LENGTH, head) if blank else None
    return length is not None and len(body) >= int(length[1])
