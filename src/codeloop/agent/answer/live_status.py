"""Shows clients the live status of a turn: working, waiting to try again,
or failed with an error.
"""

import asyncio
import logging

from codeloop.agent.engine import Engine
from codeloop.model.chat import RetryScheduled
from codeloop.schema.errors import MessageAbortedError, MessageError, describe_failure
from codeloop.schema.ids import now_ms
from codeloop.schema.live_events import (
    Busy,
    Retry,
    SessionErrored,
    SessionFailure,
    SessionState,
    Status,
    StatusChanged,
)

_LOG = logging.getLogger("codeloop.agent")


def show_status(engine: Engine, session_id: str, status: Status) -> None:
    """Show every client what a session is doing."""
    engine.store.publish_live(
        StatusChanged(properties=SessionState(session_id=session_id, status=status))
    )


def show_error(engine: Engine, session_id: str, error: MessageError) -> None:
    """Show every client why a turn failed, and log it."""
    if _LOG.hasHandlers():
        level = logging.INFO if isinstance(error, MessageAbortedError) else logging.ERROR
        _LOG.log(level, "%s: turn failed: %s", session_id, describe_failure(error))
    engine.store.publish_live(
        SessionErrored(properties=SessionFailure(session_id=session_id, error=error))
    )


class RetryStatus:
    """Shows that a request waits to be sent again, until its time has come or an
    event of its answer arrives.
    """

    def __init__(self, engine: Engine, session_id: str) -> None:
        self._engine = engine
        self._session_id = session_id
        self._is_waiting = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, event: RetryScheduled) -> None:
        """Show the wait, and log what went wrong."""
        if _LOG.hasHandlers():
            _LOG.warning(
                "%s: request failed, attempt %d follows: %s",
                self._session_id,
                event.attempt,
                event.message,
            )
        show_status(
            self._engine,
            self._session_id,
            Retry(attempt=event.attempt, message=event.message, next=event.at),
        )
        self._is_waiting = True
        delay = event.at - now_ms()
        if delay > 0:
            self._timer = asyncio.get_running_loop().call_later(delay / 1000, self.end)

    def end(self) -> None:
        """Show that the session works again, if it waited."""
        if self._is_waiting:
            self.close()
            show_status(self._engine, self._session_id, Busy())

    def close(self) -> None:
        """Stop the timer; nothing more is shown."""
        self._is_waiting = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
