"""A client that can be called before its project is open: calls wait for it."""

import asyncio
from collections.abc import AsyncIterator

from codeloop.client.client import Client
from codeloop.schema.event import Stamped
from codeloop.schema.operation import Gives, Operation, Takes


class LateClient:
    """Passes calls on to the client that `become` names, once it is known."""

    def __init__(self) -> None:
        self._client: asyncio.Future[Client] | None = None

    def become(self, client: Client) -> None:
        """Pass calls on to this client from now on."""
        if self._client is None or self._client.done():
            self._client = asyncio.get_running_loop().create_future()
        self._client.set_result(client)

    async def call(self, operation: Operation[Takes, Gives], args: Takes) -> Gives:
        """Run an operation once the project is open. Raises CodeloopError when it is refused."""
        if self._client is None:
            self._client = asyncio.get_running_loop().create_future()
        client = await asyncio.shield(self._client)
        return await client.call(operation, args)

    async def follow(self, after: int | None = None) -> AsyncIterator[Stamped]:
        """Yield every stored event after `after`, then live ones."""
        if self._client is None:
            self._client = asyncio.get_running_loop().create_future()
        client = await asyncio.shield(self._client)
        async for event in client.follow(after):
            yield event
