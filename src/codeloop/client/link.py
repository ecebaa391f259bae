"""The state of the connection to a server, reported to the user: lost, retrying, back."""

import asyncio
import time
from collections.abc import Callable

from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import CLIENT_BACKOFF_MOST, CLIENT_GONE_TIME, CLIENT_STREAM_IDLE, CLIENT_UNRESPONSIVE_TIME


class ServerLost(CodeloopError):
    """The server can't be reached, or the connection to it broke. `why`: that alone; `is_unsent`: nothing was sent."""

    def __init__(self, message: str, why: str, *, is_unsent: bool = False) -> None:
        super().__init__(message)
        self.why = why
        self.is_unsent = is_unsent


class Link:
    """The state of the connections to one server. `on_report` is called with what the user should know of it."""

    def __init__(self) -> None:
        self.on_report: Callable[[str], object] = lambda _: None
        self.reopening: asyncio.Future[None] | None = None
        """Done when the stream of events, which was lost, is open again; None: nobody waits for that."""
        self._was_up = False
        self._since = 0.0
        self._is_quiet = False

    @property
    def is_down(self) -> bool:
        """Return whether the server answered once and does not any more."""
        return bool(self._since)

    def report_loss(self, error: ServerLost, url: str) -> None:
        """Take in that the server can't be reached: return to try again later.

        Raises `error` when it was never reached, and ServerLost when it has been away for `client.gone`.
        """
        if not self._was_up:
            raise error
        now = time.monotonic()
        if not self._since:
            self._since, self._is_quiet = now, False
            until = time.strftime("%H:%M:%S", time.localtime(time.time() + CLIENT_GONE_TIME.seconds))
            self.on_report(
                f"The connection to {url} is lost: {error.why}. It is tried again now, then at least every "
                f"{CLIENT_BACKOFF_MOST.seconds:g} s, until {until}."
            )
        elif now > self._since + CLIENT_GONE_TIME.seconds:
            raise ServerLost(
                f"The server at {url} did not come back within {CLIENT_GONE_TIME.seconds:g} s: {error.why}. "
                f"Start it again "
                "(`codeloop serve`).",
                error.why,
            )

    def report_silence(self, url: str) -> None:
        """Take in that an open stream shows no sign of life: the server may hang, or the network.

        While the connection is known to be lost this is nothing new.
        """
        if not self._is_quiet and not self._since:
            self._is_quiet = True
            rest = CLIENT_STREAM_IDLE.seconds - CLIENT_UNRESPONSIVE_TIME.seconds
            self.on_report(
                f"The connection to {url} is silent: the server is stopped or busy, or the network is gone. Waiting; "
                f"it is opened again in {rest:.0f} s."
            )

    def report_answer(self, url: str) -> None:
        """Take in that the server has answered."""
        self._was_up = True
        if self._since or self._is_quiet:
            self._since, self._is_quiet = 0.0, False
            self.on_report(f"The server at {url} is back.")

    def report_reopening(self) -> None:
        """Take in that the stream of events is open again after it was lost."""
        if self.reopening is not None and not self.reopening.done():
            self.reopening.set_result(None)
        self.reopening = None

    def next_opening(self) -> asyncio.Future[None]:
        """Return a future that is done when the stream is open again after its next loss."""
        if self.reopening is None:
            self.reopening = asyncio.get_running_loop().create_future()
        return self.reopening
