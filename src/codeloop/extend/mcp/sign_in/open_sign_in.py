"""A sign-in that goes on in the background: an address that somebody opens, and a code that comes back."""

import asyncio
from collections.abc import Awaitable, Callable

from codeloop.extend.mcp.sign_in.callback import brought
from codeloop.extend.mcp.sign_in.login import Paste, Show
from codeloop.schema.errors import CodeloopError


class OpenSignIn:
    """Begins at once to `run`, which is given how to show an address and how to wait for a code."""

    def __init__(self, run: Callable[[Show, Paste], Awaitable[None]]) -> None:
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._codes: asyncio.Queue[str] = asyncio.Queue()
        self._task = asyncio.ensure_future(run(self._show, self._codes.get))
        self._task.add_done_callback(_retrieve_error)

    @property
    def is_over(self) -> bool:
        """Return whether it has ended, one way or the other."""
        return self._task.done()

    async def address(self) -> str:
        """Wait for the address to open. Raises what the sign-in failed with."""
        await asyncio.wait({self._address, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not self._address.done():
            await self.finished()
        return self._address.result()

    def paste(self, code: str) -> None:
        """Take the code that a person brings, or the address that bears it. Raises CodeloopError: it is neither."""
        brought(code)
        self._codes.put_nowait(code)

    async def finished(self) -> None:
        """Wait for the end. Raises what the sign-in failed with."""
        await asyncio.wait({self._task})
        if self._task.cancelled():
            raise CodeloopError("The sign-in was given up.")
        self._task.result()

    async def close(self) -> None:
        """Cancel the sign-in and wait until it has ended."""
        self._task.cancel()
        await asyncio.wait({self._task})

    def _show(self, url: str) -> None:
        if not self._address.done():
            self._address.set_result(url)


def _retrieve_error(task: "asyncio.Future[None]") -> None:
    """Take the error of a sign-in for which nobody waits any more: asyncio would print its traceback."""
    if not task.cancelled():
        task.exception()
