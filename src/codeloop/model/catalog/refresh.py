"""Fetches a newer catalog from models.dev in the background.

The fetched data never decides where a key is sent: known providers keep their address, protocol and variables, and a
new provider can't claim the variables of a known one.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from codeloop.kit.small_files import make_private
from codeloop.model.catalog.build import SourceProvider, pack_in_steps, read_source
from codeloop.model.catalog.catalog import FETCHED_NAME, Catalog
from codeloop.model.errors import ModelUnavailable
from codeloop.model.origin import origin
from codeloop.net.offline import is_offline
from codeloop.net.origin import is_loopback
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CATALOG_AGE, CATALOG_BYTES, CATALOG_DEADLINE

if TYPE_CHECKING:
    import httpx2

SOURCE = "https://models.dev/api.json"


class RefreshFailed(CodeloopError):
    """No newer catalog could be fetched; the old one stays."""


def is_refresh_due(cache: Path, environment: Mapping[str, str], now: float | None = None) -> bool:
    """Return whether a fetch may be tried: it is not switched off, and the last try was a day ago or more.

    `cache` is the folder that the fetched catalog is kept in; `now` in seconds since the epoch.
    """
    if is_offline(environment) or environment.get("CODELOOP_DISABLE_MODELS_FETCH", "") not in {"", "0", "false"}:
        return False
    try:
        last_try = _stamp_file(cache).stat().st_mtime
    except OSError:
        return True
    # `abs`, since the clock may have been set back: a stamp in the future must not stop fetching.
    return abs((time.time() if now is None else now) - last_try) >= CATALOG_AGE.seconds


async def refresh_if_due(cache: Path, environment: Mapping[str, str], bundled: Catalog) -> None:
    """Fetch if it is time to; without a network, or with bad data, the old catalog stays."""
    if is_refresh_due(cache, environment):
        with suppress(RefreshFailed):
            await refresh(cache, environment, bundled)


async def refresh(cache: Path, environment: Mapping[str, str], bundled: Catalog) -> int:
    """Fetch, check and store the catalog; return the number of providers.

    The address is `CODELOOP_MODELS_URL` of the environment, or models.dev. Raises `RefreshFailed`.
    """
    import asyncio

    url = environment.get("CODELOOP_MODELS_URL") or SOURCE
    try:
        make_private(cache)
        _stamp_file(cache).touch()
        async with asyncio.timeout(CATALOG_DEADLINE.seconds):
            providers = sanitize_providers(read_source(await _download(url)), bundled)
            data = b""
            for step in pack_in_steps(providers, time.strftime("%Y-%m-%d", time.gmtime())):
                # Packing takes long: other tasks of the event loop run in between.
                await asyncio.sleep(0)
                data = step or data
        _write_catalog(cache, data)
    except TimeoutError:
        raise RefreshFailed(f"{url} did not answer within {CATALOG_DEADLINE.seconds:.0f} s.") from None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RefreshFailed(f"The catalog of {url} can't be used: {error}.") from error
    return len(providers)


def sanitize_providers(source: dict[str, SourceProvider], bundled: Catalog) -> dict[str, SourceProvider]:
    """Return the fetched providers, with the addresses, protocols and variables of the bundled catalog.

    Raises `RefreshFailed` when it has less than half of the providers that we know: then it is hardly a catalog.
    """
    source_providers: dict[str, SourceProvider] = {}
    for provider_id, provider in source.items():
        row = bundled.row(provider_id)
        if row is not None:
            # Else the fetched data could send a user's key to another host.
            provider.api, provider.npm, provider.env = row.api, row.npm, list(row.env)
        elif not _is_acceptable(provider):
            continue
        else:
            provider.env = [name for name in provider.env if name not in bundled.environment_names]
        provider.id = provider_id
        source_providers[provider_id] = provider
    count = sum(row.id in source_providers for row in bundled.providers())
    if 2 * count < len(bundled.providers()):
        raise RefreshFailed(f"The fetched catalog has {count} of the {len(bundled.providers())} providers that ship.")
    return source_providers


def _is_acceptable(provider: SourceProvider) -> bool:
    """Return whether a new provider's address is encrypted or on this machine, and names no environment variable."""
    if not provider.api:
        return True
    if "$" in provider.api:
        return False
    try:
        return origin(provider.api).startswith("https://") or is_loopback(urlsplit(provider.api).hostname or "")
    except ModelUnavailable:
        return False


def _make_client() -> "httpx2.AsyncClient":
    """Make the HTTP client. Its import takes a third of a second: in a thread, so that nobody's typing waits for it."""
    import httpx2

    return httpx2.AsyncClient(timeout=CATALOG_DEADLINE.seconds)


async def _download(url: str) -> bytes:
    import asyncio

    client = await asyncio.to_thread(_make_client)
    import httpx2  # by now it is loaded

    data = bytearray()
    try:
        async with (
            client,
            client.stream("GET", url, headers={"accept": "application/json"}) as answer,
        ):
            if answer.status_code != 200:
                raise RefreshFailed(f"{url} answered with status {answer.status_code}.")
            async for chunk in answer.aiter_bytes():
                data += chunk
                if len(data) > CATALOG_BYTES.value:
                    raise RefreshFailed(f"{url} sends more than {CATALOG_BYTES.value} bytes.")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise RefreshFailed(f"{url} can't be reached: {error}.") from error
    return bytes(data)


def _write_catalog(cache: Path, data: bytes) -> None:
    fresh = cache / f".{FETCHED_NAME}.{os.getpid()}"
    try:
        fresh.write_bytes(data)
        fresh.replace(cache / FETCHED_NAME)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _stamp_file(cache: Path) -> Path:
    return cache / f"{FETCHED_NAME}.tried"
