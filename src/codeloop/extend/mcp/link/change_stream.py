"""What a server sends without being asked: its log, changes of its lists, changes of resources that were read."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.subscriptions import Subscription

_LEVEL = "info"
_GREETED = ("2024", "2025")
"""How the versions begin in which servers tell of everything by themselves, and of resources that are subscribed to."""


class ChangeStream:
    """Runs as long as a connection. Newer servers tell of changes on a stream that we hold open for that."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._uris: set[str] = set()
        self._more = asyncio.Event()

    @property
    def _is_older(self) -> bool:
        return self._client.protocol_version.startswith(_GREETED)

    async def watch(self, uri: str) -> None:
        """Subscribe to changes of a resource, if the server offers that. Raises what a request raises."""
        from mcp_types import EmptyResult, SubscribeRequest, SubscribeRequestParams

        can = self._client.server_capabilities.resources
        if can is None or not can.subscribe or uri in self._uris:
            return
        self._uris.add(uri)
        if self._is_older:
            asked = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
            await self._client.session.send_request(asked, EmptyResult)
        else:
            self._more.set()

    async def run(self) -> None:
        """Ask for the log, and hold the stream of changes until cancelled. A server that refuses is left in peace."""
        from mcp import MCPError
        from mcp.client.subscriptions import SubscriptionLost

        try:
            if self._is_older:
                await self._set_level()
                return
            can = self._client.server_capabilities
            while True:
                self._more.clear()
                lists = {
                    "tools_list_changed": bool(can.tools and can.tools.list_changed),
                    "prompts_list_changed": bool(can.prompts and can.prompts.list_changed),
                    "resources_list_changed": bool(can.resources and can.resources.list_changed),
                }
                if not self._uris and not any(lists.values()):
                    await self._more.wait()
                    continue
                async with self._client.listen(**lists, resource_subscriptions=sorted(self._uris)) as stream:
                    await self._heard(stream)
                if not self._more.is_set():
                    return
        except (MCPError, SubscriptionLost, TimeoutError):
            return

    async def _heard(self, stream: "Subscription") -> None:
        """Wait for the end of a stream, or until more has to be asked for than it was opened for."""
        waiting, ending = asyncio.create_task(self._more.wait()), asyncio.create_task(_to_the_end(stream))
        try:
            await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            ending.cancel()
        if ending.done() and not ending.cancelled():
            ending.result()

    async def _set_level(self) -> None:
        from mcp_types import EmptyResult, SetLevelRequest, SetLevelRequestParams

        if self._client.server_capabilities.logging is not None:
            asked = SetLevelRequest(params=SetLevelRequestParams(level=_LEVEL))
            await self._client.session.send_request(asked, EmptyResult)


async def _to_the_end(stream: "Subscription") -> None:
    """Take the events, of which the connection's handler has heard, so that none waits. Raises SubscriptionLost."""
    async for _ in stream:
        pass
