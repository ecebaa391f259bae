"""Sends requests to token services (a cloud's sign-in, this machine's metadata service).

Also reads what they answer, and what their tools store in files: JSON and times.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from codeloop.kit.jsonc import is_object
from codeloop.model.errors import ModelUnavailable
from codeloop.net.errors import NetworkError
from codeloop.net.hosts import require_reachable
from codeloop.net.tls import load_service_tls_context
from codeloop.schema.bounds.cloud import CLOUD_FILE, CLOUD_METADATA, CLOUD_TOKEN
from codeloop.schema.errors import CodeloopError
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json


class CloudAnswer(Struct, frozen=True):
    """The status and body of a response."""

    status: int
    body: bytes

    @property
    def json(self) -> JSON:
        """The body as a JSON object; empty when it is none."""
        return parse_json_object(self.body)

    def describe_error(self) -> str:
        """Return the error message in the body, in one line; without one, the status."""
        body = self.json
        inner: Any = body.get("error")
        inner = inner if is_object(inner) else body
        # OAuth services; Google; Amazon, which writes it in either way.
        for name in ("error_description", "message", "Message", "error"):
            if isinstance(text := inner.get(name), str) and text:
                return " ".join(text.split())[:300]
        return f"HTTP {self.status}"


class NoAnswer(CodeloopError):
    """Nothing answers at the address."""


async def send_request(
    method: str, url: str, headers: Mapping[str, str], body: bytes = b""
) -> CloudAnswer:
    """Send one request by the proxies of the environment; redirects are not followed.
    Raises `ModelUnavailable`.
    """
    host = urlsplit(url).hostname or ""
    try:
        return await _send(method, url, headers, body, CLOUD_TOKEN.seconds, by_proxy=True)
    except (NoAnswer, NetworkError) as error:
        raise ModelUnavailable(
            f"No credentials could be had from {host}: {error}. Check the network."
        ) from None


async def send_metadata_request(method: str, url: str, headers: Mapping[str, str]) -> CloudAnswer:
    """Ask the metadata service of this machine or container, never by a proxy.
    Raises `NoAnswer`.
    """
    return await _send(method, url, headers, b"", CLOUD_METADATA.seconds, by_proxy=False)


async def _send(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    seconds: float,
    *,
    by_proxy: bool,
) -> CloudAnswer:
    import httpx2

    # The metadata service is on this machine's own network: offline mode and
    # proxies don't apply to it.
    if by_proxy:
        require_reachable(urlsplit(url).hostname or "")
    trust = load_service_tls_context() if url.startswith("https:") else True
    try:
        async with httpx2.AsyncClient(verify=trust, timeout=seconds, trust_env=by_proxy) as http:
            response = await http.request(method, url, headers=dict(headers), content=body)
            # Tokens are small: of whatever else answers there, only the beginning is kept.
            return CloudAnswer(response.status_code, response.content[: CLOUD_FILE.value])
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
        raise NoAnswer(str(error) or type(error).__name__) from None


def parse_json_object(data: bytes) -> JSON:
    """Return a JSON object; empty for anything else."""
    try:
        return decode_json(data, JSON)
    except DECODE_ERRORS:
        return {}


def parse_timestamp(value: Any) -> float:
    """Return an ISO date as seconds since the epoch; 0 for anything else."""
    if not isinstance(value, str) or not value:
        return 0.0
    # Tools of Amazon write `2026-01-01T00:00:00UTC` in their cache.
    try:
        moment = datetime.fromisoformat(value.replace("UTC", "+00:00"))
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_file_or_empty(path: Path | None) -> bytes:
    """Return a file's content; nothing when it can't be read."""
    try:
        return path.read_bytes() if path is not None else b""
    except OSError:
        return b""
