"""Child processes and pipes whose exit and output are events of the asyncio loop.

asyncio's own child processes need a thread each, or signals;
these are started by vfork and watched by a pidfd.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from codeloop.kit.programs import make_child_environment

_CHUNK_BYTES = 65536
# A writer that is still alive could go on forever, so the last read is bounded.
_MAX_LAST_CHUNKS = 64
_REAP_SECONDS = 1.0
"""How long the end of a killed program is waited for: one that waits for a
broken disk may not end.
"""


class Launch(Struct, frozen=True):
    """A program to start, and the bounds of its run.

    - `arguments`: its path, or its name to be found on the PATH of this process, then its arguments
    - `descriptors`: by the number in the program, our descriptor;
      without one for 0, its stdin is empty
    - `named_variables`: those of `environment` that a configuration entry or an extension names for
      this program: they reach it in a sandbox, too, even if they look like secrets
    - `is_apart`: it leads a session of its own, and is ended with its whole group; without, it can
      use the terminal, and is ended alone (children of this process only)
    - `max_memory_bytes`: of memory, without the files that it maps;
      0: no limit (children of this process, on Linux)
    - `grace_seconds`: the time between TERM and KILL when it has to be ended;
      0: it is killed at once

    For programs that run to their end (`run_program`): `stdin`, their input; `seconds`, after which
    they are ended; `max_bytes` of stdout, beyond which they are ended; `max_error_bytes` of stderr,
    beyond which it is dropped.
    """

    arguments: Sequence[str]
    directory: Path | str
    environment: Mapping[str, str]
    descriptors: Mapping[int, int] = {}
    named_variables: Collection[str] = ()
    is_apart: bool = True
    max_memory_bytes: int = 0
    grace_seconds: float = 0
    stdin: bytes = b""
    seconds: float | None = None
    max_bytes: int = 64 * 1024 * 1024
    max_error_bytes: int = 8_192

    @property
    def process_environment(self) -> dict[str, str]:
        """The environment that the process gets: `environment` with its directory as PWD."""
        return make_child_environment(self.environment, self.directory)


class ChildProcess:
    """A child of this process. `exited`: its exit code (negative: the signal).
    Raises OSError when it can't be started.

    Descriptors that `launch` does not name lead to /dev/null.
    Those beyond stderr have the same number in the program.
    """

    exceeded = ""
    """As of a program in a sandbox: the bound for which it was ended."""

    def __init__(self, launch: Launch) -> None:
        descriptors = launch.descriptors
        popen = subprocess.Popen(
            launch.arguments,
            cwd=launch.directory,
            env=launch.process_environment,
            stdin=descriptors.get(0, subprocess.DEVNULL),
            stdout=descriptors.get(1, subprocess.DEVNULL),
            stderr=descriptors.get(2, subprocess.DEVNULL),
            start_new_session=launch.is_apart,
            pass_fds=[fd for number, fd in descriptors.items() if number > 2],
        )
        self.pid = popen.pid
        self._popen = popen
        self._is_apart = launch.is_apart
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        _limit_memory(popen.pid, launch.max_memory_bytes)
        fd = _open_pidfd(popen.pid)
        if fd is None:
            # macOS, or an old kernel.
            threading.Thread(target=self._wait, daemon=True, name=f"wait-{popen.pid}").start()
        else:
            self._loop.add_reader(fd, self._on_readable, fd)

    async def end(self, grace_seconds: float = 0) -> None:
        """End it with the processes of its group, also after its own end: TERM,
        after `grace_seconds` KILL.
        """
        if grace_seconds and not self.exited.done():
            self._send_signal(signal.SIGTERM)
            await asyncio.wait([self.exited], timeout=grace_seconds)
        self._send_signal(signal.SIGKILL)
        await asyncio.wait([self.exited], timeout=_REAP_SECONDS)
        self._resolve(-signal.SIGKILL)

    def notice_answer(self) -> None:
        """Do nothing: what it changes is checked in a sandbox only."""

    def _send_signal(self, number: signal.Signals) -> None:
        # PermissionError: macOS raises it for a group whose processes have all ended.
        with suppress(ProcessLookupError, PermissionError):
            if self._is_apart:
                os.killpg(self.pid, number)
            elif not self.exited.done():
                self._popen.send_signal(number)

    def _on_readable(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        os.close(fd)
        self._resolve(self._popen.wait())

    def _wait(self) -> None:
        code = self._popen.wait()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._resolve, code)

    def _resolve(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)


class Pipe:
    """A pipe whose reading end passes chunks to `sink`.
    `ended` is done when every writer is gone, or after `close`.

    `pause_seconds`: how long after the first bytes it reads them, and what has come meanwhile: for
    a writer of many small pieces, each of which would wake this process. `read_now` ends a pause.
    """

    def __init__(self, sink: Callable[[bytes], object], *, pause_seconds: float = 0) -> None:
        self._fd, self._writer = os.pipe()
        self._sink = sink
        self._pause_seconds = pause_seconds
        self._pause: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(self._fd, False)

    @property
    def writer(self) -> int:
        """The writing end, a descriptor to pass to a child before `listen`."""
        return self._writer

    @property
    def inode(self) -> int:
        """The number by which the system names it, for both ends alike."""
        return os.fstat(self._fd).st_ino

    def listen(self) -> None:
        """Start to read."""
        # With our own writing end open, the pipe would never end.
        os.close(self._writer)
        self._writer = -1
        self._loop.add_reader(self._fd, self._begin_pause if self._pause_seconds else self._read)

    @property
    def is_paused(self) -> bool:
        """Whether something has come that is not read yet."""
        return self._pause is not None

    def read_now(self) -> None:
        """Read what is there, if this is paused."""
        if self._pause is None:
            return
        self._pause.cancel()
        self._pause = None
        self._read_rest()
        if not self.ended.done():
            self._loop.add_reader(self._fd, self._begin_pause)

    def close(self) -> None:
        """Read the available output, then stop."""
        self._read_rest()
        self._end()

    def _begin_pause(self) -> None:
        self._loop.remove_reader(self._fd)
        self._pause = self._loop.call_later(self._pause_seconds, self.read_now)

    def _read_rest(self) -> None:
        for _ in range(_MAX_LAST_CHUNKS):
            if self.ended.done() or not self._read():
                break

    def _read(self) -> bool:
        """Read a chunk. Return whether there may be more: not if none has come, or at the end."""
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._end()
            return False
        self._sink(chunk)
        return True

    def _end(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
        if not self.ended.done():
            self.ended.set_result(None)


async def finish_uncancelled(ending: Awaitable[object]) -> None:
    """Wait until `ending` is done, even when this task is cancelled meanwhile;
    then raise the cancellation.

    For what has to be done to its end, such as ending a process.
    """
    task = asyncio.ensure_future(ending)
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError


def _open_pidfd(pid: int) -> int | None:
    """Open a descriptor that becomes readable when the process ends;
    None where the system has no pidfds.
    """
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _limit_memory(pid: int, max_bytes: int) -> None:
    # Elsewhere a limit can be set only from inside the process.
    if max_bytes and sys.platform == "linux":
        import resource

        # It may have ended already.
        with suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (max_bytes, max_bytes))
