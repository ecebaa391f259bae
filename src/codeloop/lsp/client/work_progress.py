"""The work that a server reports, such as analysing the project: what it has begun
and not ended.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from codeloop.kit.jsonc import is_object
from codeloop.schema.wire import JSON

# The time after its start within which a server that analyses the project begins to.
_START_OF_WORK_SECONDS = 3.0
# The most tasks that are kept of one server.
_MAX_TASKS = 500


class WorkProgress:
    """The work of one server. `active_work`: the tokens of the tasks that it
    has begun and not ended.

    `started_at`: when the server was initialised, on the monotonic clock;
    until then, when its program was started.
    """

    def __init__(self) -> None:
        self.started_at = time.monotonic()
        self._progressed = asyncio.Event()
        self.active_work: set[str] = set()

    async def wait_for_end(self, seconds: float) -> bool:
        """Wait until the server has ended its reported work; return whether it had any.

        A server that was started just now gets a moment to begin: it would answer from
        the few files it has read.
        """
        seconds_to_begin = min(self.started_at + _START_OF_WORK_SECONDS - time.monotonic(), seconds)
        await self._wait_until(lambda: bool(self.active_work), seconds_to_begin)
        had_work = bool(self.active_work)
        await self._wait_until(lambda: not self.active_work, seconds)
        return had_work

    async def _wait_until(self, is_done: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0)):
                while not is_done():
                    self._progressed.clear()
                    await self._progressed.wait()

    def record(self, params: JSON) -> None:
        """Record the notification that a piece of work began, goes on or ended."""
        token, value = str(params.get("token")), params.get("value")
        kind = value.get("kind") if is_object(value) else None
        if kind == "begin" and len(self.active_work) < _MAX_TASKS:
            self.active_work.add(token)
        elif kind == "end":
            self.active_work.discard(token)
        self._progressed.set()
