"""The queue of input for the app. Escape and Ctrl-C drop a flood of keys and
pastes that waits before them.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from textual import events
from textual.message import Message

from codeloop.tui.terminal.input.input_parser import TerminalInput
from codeloop.tui.terminal.input.key_parser import KeyParser
from codeloop.tui.terminal.input.paste_detector import STOP_KEYS
from codeloop.tui.terminal.terminal_app import TerminalApp

MAX_IN_FLIGHT = 16
"""Characters of keys that the app gets at a time (a paste counts as one);
it has to handle them before it gets more.
"""
# So many keys that have waited so long can't have been typed one by one.
FLOOD_KEYS, FLOOD_SECONDS = 64, 0.25
"""The keys that wait (see `count_flood_keys`), and the seconds,
above which Escape and Ctrl-C drop them.
"""
# A key may be handled only after a dialog has opened, or not at all if its widget is gone.
HANDLING_TIMEOUT = 1.0
"""Seconds after which the app gets more keys even if it has not handled those before."""


class InputDropped(Message):
    """A flood was dropped by Escape or Ctrl-C; `count`: its keys, see `count_flood_keys`."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count


class _WaitingInput(NamedTuple):
    """Input that waits, and when it arrived (monotonic seconds)."""

    arrived_at: float
    input: TerminalInput


def count_flood_keys(item: TerminalInput) -> int:
    """Return how many keys of a flood an input is: each character of a text or paste is one;
    0: it is never dropped.
    """
    if item.kind == "keys" and item.text.startswith("\x1b"):
        # Moves of the mouse and arrow keys stay; Alt with a key, or Escape, is one key.
        return 0 if item.text.startswith("\x1b[") else 1
    return len(item.text)


class InputQueue:
    """Passes keys and pastes to the app, a few at a time; filled by the input thread.

    `send` is called for each key, paste and move of the mouse.
    """

    def __init__(
        self, app: TerminalApp, loop: asyncio.AbstractEventLoop, send: Callable[[Message], object]
    ) -> None:
        self._app = app
        self._loop = loop
        self._send = send
        self._parser = KeyParser()
        self._waiting: deque[_WaitingInput] = deque()
        self._in_flight = 0
        """Characters, as in MAX_IN_FLIGHT, that the app got since it had last handled all."""
        self._pause_task: asyncio.Task[None] | None = None
        """The task that waits until the app has handled its keys."""

    def put(self, item: TerminalInput) -> None:
        """Add input; called from any thread."""
        self._loop.call_soon_threadsafe(self._enqueue, item)

    def flush(self) -> None:
        """Treat an incomplete sequence as a key, since it did not continue;
        called from any thread.
        """
        self._loop.call_soon_threadsafe(self._flush_parser)

    def _enqueue(self, item: TerminalInput) -> None:
        """Queue input; in the app's thread. Escape and Ctrl-C drop a flood
        that waits before them.
        """
        now = time.monotonic()
        if item.kind == "keys" and item.text in STOP_KEYS:
            self._drop_flood(now)
        self._waiting.append(_WaitingInput(now, item))
        self._send_next()

    def _drop_flood(self, now: float) -> None:
        """Drop the keys and pastes that wait if they are too many and wait too long to
        have been typed one by one.
        """
        if not self._waiting or now - self._waiting[0].arrived_at <= FLOOD_SECONDS:
            return
        count = sum(count_flood_keys(each.input) for each in self._waiting)
        if count > FLOOD_KEYS:
            self._waiting = deque(
                each for each in self._waiting if not count_flood_keys(each.input)
            )
            self._app.post_message(InputDropped(count))

    def _send_next(self) -> None:
        """Send the next keys to the app, once it has handled those before."""
        # Keys that the app has got can't be dropped any more, so it gets only a few at a time.
        while self._waiting and self._pause_task is None:
            if self._in_flight >= MAX_IN_FLIGHT:
                self._pause_task = asyncio.create_task(self._wait_for_app())
                return
            arrived_at, item = self._waiting.popleft()
            text, room = item.text, MAX_IN_FLIGHT - self._in_flight
            if item.kind == "paste":
                self._in_flight += 1
                self._send(events.Paste(text))
                continue
            if len(text) > room and not text.startswith("\x1b"):
                self._waiting.appendleft(
                    _WaitingInput(arrived_at, TerminalInput("keys", text[room:]))
                )
                text = text[:room]
            self._in_flight += len(text)
            # The parser would wait for the rest of a sequence; here it is known that none follows.
            messages = [events.Key("escape", text)] if text == "\x1b" else self._parser.feed(text)
            for message in messages:
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
        self._in_flight, self._pause_task = 0, None
        self._send_next()


def _call_when_handled(app: TerminalApp, callback: Callable[[], object]) -> None:
    """Call `callback` once the focused widget has handled its keys."""
    if app.screen_stack:
        (app.screen.focused or app.screen).call_later(callback)
    else:
        callback()
