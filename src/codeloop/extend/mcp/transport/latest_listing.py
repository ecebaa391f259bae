"""Keeps a server's listing current: fetches it again when the server
reports that it has changed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from codeloop.extend.mcp.cache.listing import Listing
from codeloop.extend.mcp.transport.failures import list_request_errors
from codeloop.schema.bounds.extension import MCP_CHANGES
from codeloop.schema.limits import MCP_LIST


class LatestListing:
    """Keeps a listing current. `listing`: the latest;
    `fetch` requests one, and `on_fetched` is called after each.

    Changes within some seconds are fetched together.
    """

    def __init__(self, on_fetched: Callable[[], None]) -> None:
        self.listing: Listing | None = None
        self.fetch: Callable[[], Awaitable[Listing]] | None = None
        self.is_awaited = False
        """Whether a caller of `settle` waits for the answer, and handles it."""
        self._on_fetched = on_fetched
        self._fetching: asyncio.Task[None] | None = None
        self._is_stale = False

    def note_change(self) -> None:
        """Schedule a new fetch."""
        self._is_stale = True
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetch_again())

    async def settle(self) -> None:
        """Wait for a pending fetch."""
        if self._fetching is not None and not self._fetching.done():
            self.is_awaited = True
            try:
                await asyncio.wait({self._fetching}, timeout=MCP_LIST.seconds)
            finally:
                self.is_awaited = False

    async def _fetch_again(self) -> None:
        while self._is_stale and self.fetch is not None:
            # Servers often report several lists, or one list several times, at once.
            await asyncio.sleep(MCP_CHANGES.seconds)
            # Cleared before the request: a change that arrives while it runs needs another one.
            self._is_stale = False
            # If this fails, the earlier listing is kept.
            with suppress(*list_request_errors()):
                self.listing = await self.fetch()
                self._on_fetched()
