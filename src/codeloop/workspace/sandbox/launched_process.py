"""A program that was started through the launcher, as its client sees it: its start, its end,
its exit code.
"""

import asyncio
import errno
import os
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from codeloop.kit.child_process import Launch
from codeloop.schema.bounds.sandbox import LAUNCHER_TIME
from codeloop.schema.limits import SHELL_TERM_TIME
from codeloop.workspace.sandbox.launcher.descendants import KILL

# The most that is kept of an incomplete answer: it comes from a sandbox,
# so it must not grow for ever.
ANSWER_BYTES = 256
# The answers of a supervisor: `started PID`, `failed ERRNO CAUSE`, `exit CODE`, `ended COUNT`,
# `stopped LIMIT BOUND`, `refused 1 network`.
_ANSWER = (
    rb"(started|failed|exit|ended|stopped|refused) (-?[0-9]{1,10})(?: (directory|program"
    rb"|memory|processes|network))?"
)
_BOUND_TEXTS = {b"memory": "{:,} MB of memory", b"processes": "{:,} processes and threads"}
_T = TypeVar("_T")


class LaunchedProcess:
    """A started program with all its processes. `exited`: its code (negative: the signal).

    `exceeded`: the bound for which it was ended, in words. `was_refused_network`: it tried to use
    the network, which is noticed under Landlock alone.
    `kill_all`: kills it and all that runs beside it (in its
    sandbox, or below its launcher); called if its supervisor does not answer.
    """

    def __init__(self, channel: socket.socket, kill_all: Callable[[], Awaitable[None]]) -> None:
        self.pid = 0
        self.exceeded = ""
        self.was_refused_network = False
        self._channel = channel
        self._kill_all = kill_all
        self._loop = asyncio.get_running_loop()
        self._answers = b""
        self._started: asyncio.Future[tuple[int, bytes]] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._loop.add_reader(channel, self._on_readable)

    async def wait_for_start(self, launch: Launch) -> None:
        """Wait until it runs. Raises OSError when it can't be started."""
        try:
            async with asyncio.timeout(LAUNCHER_TIME.seconds):
                failed, cause = await asyncio.shield(self._started)
        except TimeoutError:
            await self._kill_unresponsive()
            failed, cause = errno.EIO, b""
        if failed:
            faulty_path = str(launch.directory) if cause == b"directory" else launch.arguments[0]
            raise OSError(failed, os.strerror(failed), faulty_path)

    async def end(
        self, grace_seconds: float = SHELL_TERM_TIME.seconds, *, interrupt_seconds: float = 0
    ) -> int:
        """Send INT, after `interrupt_seconds` TERM, after `grace_seconds` KILL.
        Returns the number of processes.

        INT is skipped if its time is 0.
        """
        # An error means that it has ended, and then the reader gets its exit code.
        with suppress(OSError):
            self._channel.send(
                f"end {grace_seconds * 1000:.0f} {interrupt_seconds * 1000:.0f}\n".encode()
            )
        try:
            async with asyncio.timeout(interrupt_seconds + grace_seconds + LAUNCHER_TIME.seconds):
                return await asyncio.shield(self._ended)
        except TimeoutError:
            await self._kill_unresponsive()
            return await self._ended

    @property
    def has_ended(self) -> bool:
        """Whether all its processes have ended."""
        return self._ended.done()

    def _on_readable(self) -> None:
        try:
            chunk = self._channel.recv(ANSWER_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        *lines, self._answers = (self._answers + chunk).split(b"\n")
        for line in lines:
            self._handle_answer(line)
        if not chunk or len(self._answers) > ANSWER_BYTES:
            self._resolve_all()

    def _handle_answer(self, line: bytes) -> None:
        """Handle one answer. It may come from inside a sandbox,
        so anything but the known forms is ignored.
        """
        match = re.fullmatch(_ANSWER, line)
        if match is None:
            return
        value = int(match[2])
        match match[1]:
            case b"started":
                self.pid = value
                resolve_future(self._started, (0, b""))
            case b"failed":
                resolve_future(self._started, (value, match[3]))
                self._resolve_all()
            case b"stopped":
                self.exceeded = _BOUND_TEXTS.get(match[3] or b"", "").format(value)
            case b"refused":
                self.was_refused_network = True
            case b"exit":
                resolve_future(self.exited, value)
            case _:
                resolve_future(self._ended, value)
                self._resolve_all()

    async def _kill_unresponsive(self) -> None:
        """Kill it by `kill_all`: its supervisor was stopped by a command,
        or gets no processor time.
        """
        await self._kill_all()
        self._resolve_all()

    def _resolve_all(self) -> None:
        """Resolve the pending futures: the supervisor has ended, and with it all its processes."""
        if self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel)
            self._channel.close()
        resolve_future(self._started, (errno.EIO, b""))
        # The exit code was not reported: as if killed.
        resolve_future(self.exited, -KILL)
        resolve_future(self._ended, 0)


def resolve_future(future: "asyncio.Future[_T]", value: _T) -> None:
    """Set the result of a future, unless it has one."""
    if not future.done():
        future.set_result(value)
