"""Keeps a server's listing current: fetches it again when the server reports that it has changed."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from codeloop.extend.mcp.cache.listing import Listing
from codeloop.extend.mcp.transport.failures import list_request_errors
from codeloop.schema.bounds.extension import MCP_CHANGES
from codeloop.schema.limits import MCP_LIST


class LatestListing:
    """Keeps a listing current. `listing`: the latest; `fetch` requests one, and `changed` is called after each.

    Changes within some seconds are fetched together.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.listing: Listing | None = None
        self.fetch: Callable[[], Awaitable[Listing]] | None = None
        self.is_awaited = False
        """A caller waits for the answer and handles it."""
        self._changed = changed
        self._asking: asyncio.Task[None] | None = None
        self._is_stale = False

    def note_change(self) -> None:
        """Schedule a new fetch."""
        self._is_stale = True
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask_again())

    async def settle(self) -> None:
        """Wait for a pending fetch."""
        if self._asking is not None and not self._asking.done():
            self.is_awaited = True
            try:
                await asyncio.wait({self._asking}, timeout=MCP_LIST.seconds)
            finally:
                self.is_awaited = False

    async def _ask_again(self) -> None:
        while self._is_stale and self.fetch is not None:
            # Servers often report several lists, or one list several times, at once.
            await asyncio.sleep(MCP_CHANGES.seconds)
            # Cleared before the request: a change that arrives while it runs needs another one.
            self._is_stale = False
            # If this fails, the earlier listing is kept.
            with suppress(*list_request_errors()):
                self.listing = await self.fetch()
                self._changed()
