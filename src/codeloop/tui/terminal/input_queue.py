"""A queue of typed input, which Escape and Ctrl-C can overtake."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from textual import events
from textual.message import Message

from codeloop.tui.terminal.input_parser import Arrival
from codeloop.tui.terminal.paste_detector import STOPS
from codeloop.tui.terminal.sequences import KeyParser
from codeloop.tui.terminal.terminal_app import TerminalApp

AT_ONCE = 16
"""Keys that the app gets at a time."""
FLOOD = 64
"""More keys than these, waiting longer than `STALE`, were not typed: Escape and Ctrl-C drop them."""
STALE = 0.25
"""Seconds after which a key that still waits counts for that."""
HANDLING_TIMEOUT = 1.0
"""Seconds to wait for the app to handle keys before it gets more."""


class InputDropped(Message):
    """Keys were dropped because Escape or Ctrl-C came behind them; `count`: how many."""

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
        """With the time at which each came (monotonic seconds)."""
        self._in_flight = 0
        """Keys given to the app since it last had handled all."""
        self._pause: asyncio.Task[None] | None = None
        """The task that waits until the app has handled its keys."""

    def put(self, arrival: Arrival) -> None:
        """Add input; called from any thread."""
        self._loop.call_soon_threadsafe(self._put, arrival)

    def flush(self) -> None:
        """Treat a held incomplete sequence as a key, since nothing follows; called from any thread."""
        self._loop.call_soon_threadsafe(self._flush_parser)

    def _put(self, arrival: Arrival) -> None:
        """Queue input, in the app's thread; Escape and Ctrl-C drop the many letters that wait before them."""
        now = time.monotonic()
        if arrival.kind == "keys" and arrival.text in STOPS and self._waiting and now - self._waiting[0][0] > STALE:
            count = sum(len(waiting.text) for _, waiting in self._waiting if not waiting.text.startswith("\x1b"))
            if count > FLOOD:
                self._waiting = deque(each for each in self._waiting if each[1].text.startswith("\x1b["))
                self._app.post_message(InputDropped(count))
        self._waiting.append((now, arrival))
        self._feed()

    def _feed(self) -> None:
        """Post the next keys to the app, unless it has not handled the last ones."""
        while self._waiting and self._pause is None:
            if self._in_flight >= AT_ONCE:
                self._pause = asyncio.create_task(self._wait_for_app())
                return
            came, arrival = self._waiting.popleft()
            text, room = arrival.text, AT_ONCE - self._in_flight
            if arrival.kind == "paste":
                self._in_flight += 1
                self._send(events.Paste(text))
                continue
            if len(text) > room and not text.startswith("\x1b"):
                self._waiting.appendleft((came, Arrival("keys", text[room:])))
                text = text[:room]
            self._in_flight += len(text)
            for message in [events.Key("escape", text)] if text == "\x1b" else self._parser.feed(text):
                self._send(message)

    def _flush_parser(self) -> None:
        if not self._waiting:
            for message in self._parser.tick():
                self._send(message)

    async def _wait_for_app(self) -> None:
        """Wait until the app has handled its keys, or for a while, then give it more."""
        event = asyncio.Event()
        self._app.call_later(_call_when_handled, self._app, event.set)
        with suppress(TimeoutError):
            async with asyncio.timeout(HANDLING_TIMEOUT):
                await event.wait()
                await self._app.wait_for_keys()
        self._in_flight, self._pause = 0, None
        self._feed()


def _call_when_handled(app: TerminalApp, callback: Callable[[], object]) -> None:
    """Call back once the focused widget has handled its keys."""
    if app.screen_stack:
        (app.screen.focused or app.screen).call_later(callback)
    else:
        callback()
