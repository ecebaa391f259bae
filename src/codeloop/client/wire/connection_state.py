"""`ConnectionState`: the state of the connections to a server;
reports to the user when it is lost, silent, or back.
"""

import asyncio
import time
from collections.abc import Callable

from codeloop.client.client import ServerLost
from codeloop.schema.limits import (
    CLIENT_BACKOFF_MOST,
    CLIENT_GONE_TIME,
    CLIENT_STREAM_IDLE,
    CLIENT_UNRESPONSIVE_TIME,
)


class ConnectionState:
    """The state of the connections to one server. `on_report` is called with each line
    that the user should read.
    """

    def __init__(self) -> None:
        self.on_report: Callable[[str], object] = lambda _: None
        self._reopening: asyncio.Future[None] | None = None
        """Done when the lost stream of events is open again; None: no request waits for that."""
        self._was_reached = False
        # Monotonic seconds; 0: the connection is not lost.
        self._lost_at = 0.0
        self._is_silent = False

    @property
    def is_down(self) -> bool:
        """Whether the server, which answered before, does not answer now."""
        return bool(self._lost_at)

    def record_loss(self, error: ServerLost, url: str) -> None:
        """Record that the server can't be reached;
        returns normally when the caller should try again.

        Raises `error` if the server was never reached,
        and ServerLost if it has been away for `client.gone`.
        """
        # A server that never answered is a wrong address or was never started: waiting
        # for it would hide that.
        if not self._was_reached:
            raise error
        now = time.monotonic()
        if not self._lost_at:
            self._lost_at, self._is_silent = now, False
            # The monotonic clock measures the wait; the text needs the time of day.
            until = time.strftime(
                "%H:%M:%S", time.localtime(time.time() + CLIENT_GONE_TIME.seconds)
            )
            self.on_report(
                f"The connection is lost: {error.why}. It is tried again now, then at least every "
                f"{CLIENT_BACKOFF_MOST.seconds:g} s, until {until} ({url})."
            )
        elif now > self._lost_at + CLIENT_GONE_TIME.seconds:
            raise ServerLost(
                f"The server at {url} did not come back within {CLIENT_GONE_TIME.seconds:g} s: {error.why}. "
                "Start it again (`codeloop serve`).",
                error.why,
            )

    def record_silence(self, url: str) -> None:
        """Record that an open stream sends nothing: the server or the network hangs."""
        if not self._is_silent and not self._lost_at:
            self._is_silent = True
            rest = CLIENT_STREAM_IDLE.seconds - CLIENT_UNRESPONSIVE_TIME.seconds
            self.on_report(
                "The connection is silent: the server is stopped or busy, or the network is gone. Waiting; "
                f"it is opened again in {rest:.0f} s ({url})."
            )

    def record_answer(self, url: str) -> None:
        """Record an answer of the server, and report the end of a loss or a silence."""
        self._was_reached = True
        if self._lost_at or self._is_silent:
            self._lost_at, self._is_silent = 0.0, False
            self.on_report(f"The server at {url} is back.")

    def record_reopening(self) -> None:
        """Record that the lost stream of events is open again,
        and wake the requests that wait for it.
        """
        if self._reopening is not None and not self._reopening.done():
            self._reopening.set_result(None)
        self._reopening = None

    def get_next_opening(self) -> asyncio.Future[None]:
        """Return the future that is done when the stream of events, lost now or later,
        is open again.
        """
        if self._reopening is None:
            self._reopening = asyncio.get_running_loop().create_future()
        return self._reopening
