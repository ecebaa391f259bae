"""Discovers the model servers that run on this machine, by asking at their addresses."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from codeloop.model.catalog.local_request import extract_body, send_request
from codeloop.model.catalog.vendors import LOCAL_SERVERS, LocalServer
from codeloop.schema.limits import DISCOVER_TIME
from codeloop.schema.wire import DECODE_ERRORS, decode_json

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
