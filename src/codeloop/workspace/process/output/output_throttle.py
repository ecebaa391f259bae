"""Shows the output of a command while it runs, at most a few times a second."""

import asyncio
from collections.abc import Callable

from codeloop.schema.limits import SHELL_REPORT
from codeloop.workspace.process.output.output_buffer import OutputBuffer


class OutputThrottle:
    """Calls `show` with the latest output after a change, at most once every SHELL_REPORT."""

    def __init__(self, buffer: OutputBuffer, show: Callable[[str], None]) -> None:
        self._buffer = buffer
        self._show = show
        self._timer: asyncio.TimerHandle | None = None

    def notify(self) -> None:
        """Report that there is more output."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SHELL_REPORT.seconds, self._show_output)

    def close(self) -> None:
        """Stop showing."""
        if self._timer is not None:
            self._timer.cancel()

    def _show_output(self) -> None:
        self._timer = None
        self._show(self._buffer.read_recent())
