"""The `ctx` argument of tools and hooks in a Python host."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from codeloop.extend.functions import wait_in_thread
from codeloop.extend.host.protocol import CallOrigin, HostQuestion, OperationCall
from codeloop.extend.host.python.channel import HostChannel

T = TypeVar("T")


class HostContext:
    """The `ctx` argument of a tool or hook; implements Context.
    `call`: the id of the request that it belongs to.
    """

    def __init__(
        self, channel: HostChannel, call_origin: CallOrigin, options: Mapping[str, Any], call: int
    ) -> None:
        self.session_id = call_origin.session_id
        self.message_id = call_origin.message_id
        self.call_id = call_origin.call_id
        self.agent = call_origin.agent
        self.directory = Path(call_origin.directory)
        self.worktree = Path(call_origin.worktree)
        self.options = options
        self.abort = Event()
        self._channel = channel
        self._call = call
        self._loop = asyncio.get_running_loop()

    async def ask(
        self,
        permission: str,
        patterns: Sequence[str] = ("*",),
        *,
        always: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """See Context."""
        await self._channel.ask(
            HostQuestion,
            call=self._call,
            permission=permission,
            patterns=tuple(patterns),
            always=tuple(always),
            metadata=dict(metadata or {}),
        )

    def report(
        self, *, title: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """See Context."""
        self._channel.report(self._call, title, None if metadata is None else dict(metadata))

    async def operation(
        self,
        name: str,
        *,
        path: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
    ) -> Any:
        """See Context."""
        return await self._channel.ask(
            OperationCall,
            operation=name,
            path=None if path is None else dict(path),
            query=None if query is None else dict(query),
            body=body,
        )

    def log(self, message: str, level: str = "info", **extra: Any) -> None:
        """See Context."""
        self._channel.log(message, level, extra or None)

    def wait(self, awaitable: Awaitable[T]) -> T:
        """See Context."""
        return wait_in_thread(self._loop, awaitable)
