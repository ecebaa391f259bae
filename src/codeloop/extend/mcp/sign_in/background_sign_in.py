"""A sign-in that runs in the background, for a client that shows its address and
passes on the pasted code.
"""

import asyncio
from collections.abc import Awaitable, Callable

from codeloop.extend.mcp.sign_in.callback import parse_redirect
from codeloop.extend.mcp.sign_in.login import ShowAddress, WaitForPaste
from codeloop.schema.errors import CodeloopError


class BackgroundSignIn:
    """Starts `run` at once, passing it functions to show an address and to wait for a code."""

    def __init__(self, run: Callable[[ShowAddress, WaitForPaste], Awaitable[None]]) -> None:
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._codes: asyncio.Queue[str] = asyncio.Queue()
        self._task = asyncio.ensure_future(run(self._show, self._codes.get))
        # A sign-in may fail after the client that started it has gone.
        self._task.add_done_callback(_retrieve_error)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._task.done()

    async def wait_for_address(self) -> str:
        """Wait for the address to open, and return it. Raises the sign-in's error."""
        await asyncio.wait({self._address, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not self._address.done():
            await self.wait()
        return self._address.result()

    def paste(self, code: str) -> None:
        """Accept the user's code, or the address with it. Raises CodeloopError: it is neither."""
        parse_redirect(code)
        self._codes.put_nowait(code)

    async def wait(self) -> None:
        """Wait for the end. Raises the sign-in's error."""
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
    """Retrieve the error of an abandoned sign-in, since asyncio would log it."""
    if not task.cancelled():
        task.exception()
