"""Requests to token services: a cloud's sign-in, or the metadata service of this machine."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from codeloop.kit.jsonc import is_object
from codeloop.kit.small_files import lock
from codeloop.model.errors import ModelUnavailable
from codeloop.net.http1 import NetworkError
from codeloop.net.offline import check_reach
from codeloop.net.tls import service_tls_context
from codeloop.schema.bounds.cloud import CLOUD_FILE, CLOUD_LOCK, CLOUD_METADATA, CLOUD_TOKEN
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import JSON


class CloudAnswer(Struct, frozen=True):
    """Status and body of an answer."""

    status: int
    body: bytes

    @property
    def json(self) -> JSON:
        """The body as a JSON object; empty when it is none."""
        return read_json(self.body)

    def reason(self) -> str:
        """Return the service's message in one line."""
        body = self.json
        inner: Any = body.get("error")
        inner = inner if is_object(inner) else body
        for name in ("error_description", "message", "Message", "error"):
            if isinstance(text := inner.get(name), str) and text:
                return " ".join(text.split())[:300]
        return f"HTTP {self.status}"


class NoAnswer(CodeloopError):
    """Nothing answers at the address."""


async def ask(method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> CloudAnswer:
    """Send one request by the proxies of the environment; redirects are not followed. Raises `ModelUnavailable`."""
    host = urlsplit(url).hostname or ""
    try:
        return await _send(method, url, headers, body, CLOUD_TOKEN.seconds, by_proxy=True)
    except (NoAnswer, NetworkError) as error:
        raise ModelUnavailable(f"No credentials could be had from {host}: {error}. Check the network.") from None


async def ask_metadata(method: str, url: str, headers: Mapping[str, str]) -> CloudAnswer:
    """Ask the metadata service of this machine or container, never by a proxy. Raises `NoAnswer`."""
    return await _send(method, url, headers, b"", CLOUD_METADATA.seconds, by_proxy=False)


async def _send(
    method: str, url: str, headers: Mapping[str, str], body: bytes, seconds: float, *, by_proxy: bool
) -> CloudAnswer:
    import httpx2

    if by_proxy:
        check_reach(urlsplit(url).hostname or "")
    trust = service_tls_context() if url.startswith("https:") else True
    try:
        async with httpx2.AsyncClient(verify=trust, timeout=seconds, trust_env=by_proxy) as http:
            response = await http.request(method, url, headers=dict(headers), content=body)
            return CloudAnswer(response.status_code, response.content[: CLOUD_FILE.value])
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
        raise NoAnswer(str(error) or type(error).__name__) from None


def read_json(data: bytes) -> JSON:
    """Return a JSON object; empty for anything else."""
    try:
        return msgspec.json.decode(data, type=JSON)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def read_moment(value: Any) -> float:
    """Return a date as seconds since the epoch; 0 for none."""
    if not isinstance(value, str) or not value:
        return 0.0
    try:
        moment = datetime.fromisoformat(value.replace("UTC", "+00:00"))
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_bytes(path: Path | None) -> bytes:
    """Return a file's content; nothing when it can't be read."""
    try:
        return path.read_bytes() if path is not None else b""
    except OSError:
        return b""


async def hold_lock(stack: ExitStack, path: Path) -> None:
    """Take a lock for as long as `stack` lasts; without it when the folder can't be written to, or after a while."""
    end = time.monotonic() + CLOUD_LOCK.seconds
    while time.monotonic() < end:
        try:
            stack.enter_context(lock(path, 0))
        except TimeoutError:
            await asyncio.sleep(0.05)
        except OSError:
            return
        else:
            return
