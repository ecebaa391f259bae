"""Discovers the model servers that run on this machine, by asking at their addresses."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from codeloop.kit.jsonc import is_object
from codeloop.model.catalog.vendors import LOCAL_SERVERS, LocalServer
from codeloop.net.hosts import add_brackets
from codeloop.schema.limits import DISCOVER_BYTES, DISCOVER_TIME
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


DERIVED_PREFIX = "codeloop/"
"""The prefix of models that codeloop has created at Ollama: copies of others with more context.
They are not listed.
"""


class DiscoveredServer(NamedTuple):
    """A local server that answered, and the ids of its models (perhaps none)."""

    server: LocalServer
    models: tuple[str, ...]


class _ListedModel(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_ListedModel] | None


async def discover_servers(
    servers: Sequence[LocalServer] = LOCAL_SERVERS,
) -> list[DiscoveredServer]:
    """Ask all servers at once for their models (`GET <url>/models`);
    return those that answer in time, in order.

    Never raises: an absent, slow or different server is left out.
    """
    import asyncio

    tasks = [asyncio.ensure_future(_request_models(server)) for server in servers]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, timeout=DISCOVER_TIME.seconds)
    finally:
        # Also when this task is cancelled: the requests must not outlive it.
        for task in tasks:
            task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    return [answer for answer in answers if isinstance(answer, DiscoveredServer)]


async def find_listening_urls(urls: Iterable[str]) -> frozenset[str]:
    """Return those of some URLs, of servers on this machine, that accept connections."""
    import asyncio
    import socket

    def connect(url: str) -> str | None:
        parts = urlsplit(url)
        try:
            socket.create_connection(
                (parts.hostname, parts.port or 80), DISCOVER_TIME.seconds
            ).close()
        except OSError:
            return None
        return url

    # On threads: a connection that was made counts,
    # however long this process stood still meanwhile.
    answers = await asyncio.gather(*(asyncio.to_thread(connect, url) for url in set(urls)))
    return frozenset(url for url in answers if url is not None)


async def _request_models(server: LocalServer) -> DiscoveredServer | None:
    answer = await send_request(f"{server.url}/models", None)
    return None if answer is None else _parse_model_list(server, answer)


def _parse_model_list(server: LocalServer, answer: bytes) -> DiscoveredServer | None:
    try:
        data = decode_json(extract_body(answer), _ModelList).data or []
    except DECODE_ERRORS:
        return None
    ids = (
        model.id
        for model in data
        if model.id.isprintable() and not model.id.startswith(DERIVED_PREFIX)
    )
    return DiscoveredServer(server, tuple(ids))
