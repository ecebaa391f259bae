"""Subscribes to the changes that a server reports: of its lists,
and of resources that were read.
"""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client.subscriptions import Subscription

_LOG_LEVEL = "info"
HANDSHAKE_VERSIONS = ("2024", "2025")
"""The years of versions that begin with a handshake,
and whose servers send all notifications unasked.

Later ones need no handshake, and a subscription.
"""


class ChangeStream:
    """Subscribes to a server's changes while a connection lasts.
    Newer servers report them on a stream held open.
    """

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._uris: set[str] = set()
        self._has_new_uri = asyncio.Event()

    @property
    def _is_older(self) -> bool:
        return self._client.protocol_version.startswith(HANDSHAKE_VERSIONS)

    async def watch(self, uri: str) -> None:
        """Subscribe to changes of a resource, if the server offers that.
        Raises what a request raises.
        """
        from mcp_types import EmptyResult, SubscribeRequest, SubscribeRequestParams

        capabilities = self._client.server_capabilities.resources
        if capabilities is None or not capabilities.subscribe or uri in self._uris:
            return
        self._uris.add(uri)
        if self._is_older:
            subscribe_request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
            await self._client.session.send_request(subscribe_request, EmptyResult)
        else:
            self._has_new_uri.set()

    async def run(self) -> None:
        """Have an older server send its log; hold the stream of changes of a
        newer one until cancelled.

        A refusal is ignored.
        """
        from mcp import MCPError
        from mcp.client.subscriptions import SubscriptionLost

        try:
            if self._is_older:
                await self._request_log()
                return
            tools = self._client.server_capabilities.tools
            prompts = self._client.server_capabilities.prompts
            resources = self._client.server_capabilities.resources
            lists = {
                "tools_list_changed": bool(tools and tools.list_changed),
                "prompts_list_changed": bool(prompts and prompts.list_changed),
                "resources_list_changed": bool(resources and resources.list_changed),
            }
            while True:
                self._has_new_uri.clear()
                if not self._uris and not any(lists.values()):
                    await self._has_new_uri.wait()
                    continue
                async with self._client.listen(
                    **lists, resource_subscriptions=sorted(self._uris)
                ) as stream:
                    await self._follow(stream)
                if not self._has_new_uri.is_set():
                    return
        except (MCPError, SubscriptionLost, TimeoutError):
            return

    async def _follow(self, stream: "Subscription") -> None:
        """Wait for the end of a stream, or until it must be reopened for more subscriptions."""
        waiting, ending = (
            asyncio.create_task(self._has_new_uri.wait()),
            asyncio.create_task(_drain(stream)),
        )
        try:
            await asyncio.wait({waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            ending.cancel()
        if ending.done() and not ending.cancelled():
            ending.result()

    async def _request_log(self) -> None:
        """Have an older server send the messages of its log, if it has one."""
        from mcp_types import EmptyResult, SetLevelRequest, SetLevelRequestParams

        if self._client.server_capabilities.logging is not None:
            set_level_request = SetLevelRequest(params=SetLevelRequestParams(level=_LOG_LEVEL))
            await self._client.session.send_request(set_level_request, EmptyResult)


async def _drain(stream: "Subscription") -> None:
    """Drain the events, which the connection's handler already got. Raises SubscriptionLost."""
    async for _ in stream:
        pass
