"""What a server offers now: asked again when it says that its lists have changed."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from codeloop.extend.mcp.known.listing import Listing
from codeloop.extend.mcp.link.failures import request_errors
from codeloop.schema.bounds.extension import MCP_CHANGES
from codeloop.schema.limits import MCP_LIST


class LatestListing:
    """See the module. `found`: the latest answer; `ask` asks for one, and `changed` is called after each.

    A server may report any number of changes: it is asked once for all of some seconds.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.found: Listing | None = None
        self.ask: Callable[[], Awaitable[Listing]] | None = None
        self.is_awaited = False
        """Somebody waits for the answer, who takes it up."""
        self._changed = changed
        self._asking: asyncio.Task[None] | None = None
        self._is_stale = False

    def note_change(self) -> None:
        """Ask again soon."""
        self._is_stale = True
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask_again())

    async def settle(self) -> None:
        """Wait for the answer if one is due."""
        if self._asking is not None and not self._asking.done():
            self.is_awaited = True
            try:
                await asyncio.wait({self._asking}, timeout=MCP_LIST.seconds)
            finally:
                self.is_awaited = False

    async def _ask_again(self) -> None:
        while self._is_stale and self.ask is not None:
            await asyncio.sleep(MCP_CHANGES.seconds)
            self._is_stale = False
            with suppress(*request_errors()):  # what it offered before stays, as far as anybody knows
                self.found = await self.ask()
                self._changed()
