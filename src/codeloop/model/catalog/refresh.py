"""Fetches a newer catalog from models.dev: in the background at most once a day,
and for `codeloop models --refresh`.

The fetched data never decides where a key is sent: known providers keep their address, protocol and
variables, and a new provider can't claim the variables of a known one.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codeloop.kit.small_files import create_private_folder
from codeloop.model.base_url import parse_origin
from codeloop.model.catalog.catalog import FETCHED_FILE_NAME, Catalog
from codeloop.model.catalog.packer import SourceProvider, iterate_packing, parse_source
from codeloop.model.errors import ModelUnavailable
from codeloop.net.hosts import is_loopback, is_offline
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CATALOG_AGE, CATALOG_BYTES, CATALOG_DEADLINE
from codeloop.schema.wire import DECODE_ERRORS

if TYPE_CHECKING:
    import httpx2

SOURCE_URL = "https://models.dev/api.json"


class RefreshFailed(CodeloopError):
    """No newer catalog could be fetched; the old one stays."""


def is_refresh_due(cache: Path, environment: Mapping[str, str], now: float | None = None) -> bool:
    """Return whether a fetch may be tried: it is not switched off,
    and the last try was a day ago or more.

    `cache` is the folder that the fetched catalog is kept in; `now` in seconds since the epoch.
    """
    switch = _read_variable(environment, "DISABLE_MODELS_FETCH")
    if is_offline(environment) or switch not in {"", "0", "false"}:
        return False
    try:
        last_try = _get_stamp_file(cache).stat().st_mtime
    except OSError:
        return True
    # `abs`, since the clock may have been set back: a stamp in the future must not stop fetching.
    return abs((time.time() if now is None else now) - last_try) >= CATALOG_AGE.seconds


def _read_variable(environment: Mapping[str, str], name: str) -> str:
    """Return the value of a variable of ours, else that of OpenCode's; "": neither is set."""
    return environment.get(f"CODELOOP_{name}") or environment.get(f"OPENCODE_{name}") or ""


async def refresh_catalog_if_due(
    cache: Path, environment: Mapping[str, str], bundled: Catalog
) -> None:
    """Fetch the catalog if the last try is a day old;
    without a network, or with bad data, the old one stays.
    """
    if is_refresh_due(cache, environment):
        with suppress(RefreshFailed):
            await refresh_catalog(cache, environment, bundled)


async def refresh_catalog(cache: Path, environment: Mapping[str, str], bundled: Catalog) -> int:
    """Fetch, check and store the catalog; return the number of providers.

    The address is `CODELOOP_MODELS_URL` of the environment, or models.dev. Raises `RefreshFailed`.
    """
    import asyncio

    url = _read_variable(environment, "MODELS_URL") or SOURCE_URL
    try:
        create_private_folder(cache)
        # Before the try, not after it: a failure must not be repeated at each start.
        _get_stamp_file(cache).touch()
        async with asyncio.timeout(CATALOG_DEADLINE.seconds):
            providers = sanitize_providers(parse_source(await _download(url)), bundled)
            packed = b""
            for step in iterate_packing(providers, time.strftime("%Y-%m-%d", time.gmtime())):
                # Packing takes long: other tasks of the event loop run in between.
                await asyncio.sleep(0)
                # All steps but the last are None.
                packed = step or packed
        _write_catalog(cache, packed)
    except TimeoutError:
        raise RefreshFailed(
            f"{url} did not answer within {CATALOG_DEADLINE.seconds:.0f} s."
        ) from None
    except (OSError, *DECODE_ERRORS) as error:
        raise RefreshFailed(f"The catalog of {url} can't be used: {error}.") from error
    return len(providers)


def sanitize_providers(
    source: dict[str, SourceProvider], bundled: Catalog
) -> dict[str, SourceProvider]:
    """Return the fetched providers: known ones with their address,
    protocol and variables in the bundled catalog.

    New ones keep their own address if it is safe, else they are left out. Raises `RefreshFailed`
    when less than half of the providers that we know are there: then it is hardly a catalog.
    """
    source_providers: dict[str, SourceProvider] = {}
    for provider_id, provider in source.items():
        row = bundled.find_row(provider_id)
        if row is not None:
            # Otherwise the fetched data could send a user's key to another host.
            provider.api, provider.npm, provider.env = row.api, row.npm, list(row.env)
        elif not _is_acceptable_provider(provider):
            continue
        else:
            # Otherwise a new provider could have the key of a known one sent to its own address.
            provider.env = [name for name in provider.env if name not in bundled.environment_names]
        provider.id = provider_id
        source_providers[provider_id] = provider
    count = sum(row.id in source_providers for row in bundled.list_providers())
    # A site that has moved or a proxy may answer with JSON of another kind.
    if 2 * count < len(bundled.list_providers()):
        raise RefreshFailed(
            f"The fetched catalog has {count} of the {len(bundled.list_providers())} providers that ship."
        )
    return source_providers


def _is_acceptable_provider(provider: SourceProvider) -> bool:
    """Return whether a new provider has no address, or an encrypted or local one that
    names no environment variable.
    """
    if not provider.api:
        return True
    if "$" in provider.api:
        return False
    try:
        return parse_origin(provider.api).startswith("https://") or is_loopback(
            urlsplit(provider.api).hostname or ""
        )
    except ModelUnavailable:
        return False


def _make_client() -> "httpx2.AsyncClient":
    """Make the HTTP client. Runs in a thread: the import takes a third of a second,
    which would stop the UI.
    """
    import httpx2

    return httpx2.AsyncClient(timeout=CATALOG_DEADLINE.seconds)


async def _download(url: str) -> bytes:
    import asyncio

    client = await asyncio.to_thread(_make_client)
    # Loaded by now, so this import is quick.
    import httpx2

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
    # Written next to the old file and then moved over it,
    # so that another process never reads half a catalog.
    fresh = cache / f".{FETCHED_FILE_NAME}.{os.getpid()}"
    try:
        fresh.write_bytes(data)
        fresh.replace(cache / FETCHED_FILE_NAME)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def _get_stamp_file(cache: Path) -> Path:
    return cache / f"{FETCHED_FILE_NAME}.tried"
