"""`LateClient`: a client that can be called before its project is open. Calls wait until it is."""

import asyncio
from collections.abc import AsyncIterator

from codeloop.client.client import Client
from codeloop.schema.event import StampedEvent
from codeloop.schema.operation import Gives, Operation, Takes


class LateClient:
    """Forwards calls to the client given to `set_client`; calls made before that wait for it."""

    def __init__(self) -> None:
        self._client: asyncio.Future[Client] | None = None

    def set_client(self, client: Client) -> None:
        """Pass calls on to this client from now on."""
        if self._client is None or self._client.done():
            self._client = asyncio.get_running_loop().create_future()
        self._client.set_result(client)

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Run an operation once the project is open. Raises CodeloopError when it is refused."""
        client = await self._wait_for_client()
        return await client.call(operation, args)

    async def follow(
        self, after: int | None = None, root: str | None = None
    ) -> AsyncIterator[StampedEvent]:
        """Yield every stored event after `after`, then live ones, as `Client.follow` does."""
        client = await self._wait_for_client()
        async for event in client.follow(after, root):
            yield event

    async def _wait_for_client(self) -> Client:
        # Not created in the constructor, where no event loop runs yet.
        if self._client is None:
            self._client = asyncio.get_running_loop().create_future()
        # A cancelled call must not cancel the future that the other calls wait for.
        return await asyncio.shield(self._client)
