"""A model wrapper that limits a provider's concurrent requests (`options.concurrency`);
`Providers` applies it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from codeloop.model.chat import ChatModel, ModelEvent, ModelInfo, ModelRequest


class QueuedModel:
    """Passes requests on to a model, and holds one of the provider's `slots`
    during each of them.
    """

    def __init__(self, inner: ChatModel, slots: asyncio.Semaphore) -> None:
        self._inner = inner
        self._slots = slots

    @property
    def info(self) -> ModelInfo:
        """The wrapped model's metadata."""
        return self._inner.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Send the request when a slot is free, and yield events until Finished."""
        async with self._slots, aclosing(self._inner.stream(request)) as events:
            async for event in events:
                yield event
