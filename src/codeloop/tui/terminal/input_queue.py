"""The queue of input for the app. Escape and Ctrl-C drop a flood of keys that waits before them."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from textual import events
from textual.message import Message

from codeloop.tui.terminal.input_parser import Arrival
from codeloop.tui.terminal.paste_detector import STOP_KEYS
from codeloop.tui.terminal.sequences import KeyParser
from codeloop.tui.terminal.terminal_app import TerminalApp

MAX_IN_FLIGHT = 16
"""Keys that the app gets before it has to have handled them."""
FLOOD = 64
"""Waiting keys from which they can't have been typed, if they wait for `FLOOD_SECONDS`: Escape and Ctrl-C drop them."""
FLOOD_SECONDS = 0.25
HANDLING_TIMEOUT = 1.0
"""Seconds that the app has to handle keys before it gets more."""


class InputDropped(Message):
    """Waiting keys were dropped by Escape or Ctrl-C; `count`: how many."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count


class InputQueue:
    """Passes keys and pastes to the app, a few at a time; filled by the input thread.

    `send` is called for each key, paste and move of the mouse.
    """

    def __init__(self, app: TerminalApp, loop: asyncio.AbstractEventLoop, send: Callable[[Message], object]) -> None:
        self._app = app
        self._loop = loop
        self._send = send
        self._parser = KeyParser()
        self._waiting: deque[tuple[float, Arrival]] = deque()
        """The input that waits, each with the time at which it arrived (monotonic seconds)."""
        self._in_flight = 0
        """Keys that the app got since it had last handled all."""
        self._pause: asyncio.Task[None] | None = None
        """The task that waits until the app has handled its keys."""

    def put(self, arrival: Arrival) -> None:
        """Add input; called from any thread."""
        self._loop.call_soon_threadsafe(self._put, arrival)

    def flush(self) -> None:
        """Treat an incomplete sequence as a key, since it did not continue; called from any thread."""
        self._loop.call_soon_threadsafe(self._flush_parser)

    def _put(self, arrival: Arrival) -> None:
        """Queue input; in the app's thread. Escape and Ctrl-C drop a flood of letters that waits before them."""
        now = time.monotonic()
        if (
            arrival.kind == "keys"
            and arrival.text in STOP_KEYS
            and self._waiting
            and now - self._waiting[0][0] > FLOOD_SECONDS
        ):
            count = sum(len(waiting.text) for _, waiting in self._waiting if not waiting.text.startswith("\x1b"))
            if count > FLOOD:
                self._waiting = deque(each for each in self._waiting if each[1].text.startswith("\x1b["))
                self._app.post_message(InputDropped(count))
        self._waiting.append((now, arrival))
        self._feed()

    def _feed(self) -> None:
        """Send the next keys to the app, once it has handled those before."""
        while self._waiting and self._pause is None:
            if self._in_flight >= MAX_IN_FLIGHT:
                self._pause = asyncio.create_task(self._wait_for_app())
                return
            arrived_at, arrival = self._waiting.popleft()
            text, room = arrival.text, MAX_IN_FLIGHT - self._in_flight
            if arrival.kind == "paste":
                self._in_flight += 1
                self._send(events.Paste(text))
                continue
            if len(text) > room and not text.startswith("\x1b"):
                self._waiting.appendleft((arrived_at, Arrival("keys", text[room:])))
                text = text[:room]
            self._in_flight += len(text)
            for message in [events.Key("escape", text)] if text == "\x1b" else self._parser.feed(text):
                self._send(message)

    def _flush_parser(self) -> None:
        if not self._waiting:
            for message in self._parser.tick():
                self._send(message)

    async def _wait_for_app(self) -> None:
        """Wait until the app has handled its keys, at most `HANDLING_TIMEOUT`; then send more."""
        event = asyncio.Event()
        self._app.call_later(_call_when_handled, self._app, event.set)
        with suppress(TimeoutError):
            async with asyncio.timeout(HANDLING_TIMEOUT):
                await event.wait()
                await self._app.wait_for_keys()
        self._in_flight, self._pause = 0, None
        self._feed()


def _call_when_handled(app: TerminalApp, callback: Callable[[], object]) -> None:
    """Call `callback` once the focused widget has handled its keys."""
    if app.screen_stack:
        (app.screen.focused or app.screen).call_later(callback)
    else:
        callback()
