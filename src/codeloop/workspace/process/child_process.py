"""Child processes and pipes whose exit and output are events of the asyncio loop.

asyncio's own child processes need a thread each, or signals; these are started by vfork and watched by a pidfd.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_CHUNK_BYTES = 65536
# A writer that is still alive could go on forever, so the last read is bounded.
_MAX_LAST_CHUNKS = 64


class ChildProcess:
    """A running process that leads its own session. `exited`: its exit code (negative: the signal)."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self.pid = popen.pid
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        fd = _open_pidfd(popen.pid)
        if fd is None:
            # macOS, or an old kernel.
            threading.Thread(target=self._wait, daemon=True, name=f"wait-{popen.pid}").start()
        else:
            self._loop.add_reader(fd, self._on_readable, fd)

    def kill(self) -> None:
        """Kill this one process if it still runs."""
        if not self.exited.done():
            self._popen.kill()

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


def spawn(
    command: Sequence[str | bytes],
    *,
    directory: Path,
    environment: Mapping[str, str],
    output: int,
    errors: int | None = None,
) -> ChildProcess:
    """Start a process in a new session, with an empty stdin.

    `output`: the descriptor for stdout; `errors`: for stderr, None: `output` too. Raises OSError.
    """
    popen = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output if errors is None else errors,
        start_new_session=True,
    )
    return ChildProcess(popen)


class Pipe:
    """A pipe whose reading end passes chunks to `sink`. `ended` is done when every writer is gone, or after `close`."""

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._fd, self._writer = os.pipe()
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(self._fd, False)

    @property
    def writer(self) -> int:
        """The writing end, a descriptor to pass to a child before `listen`."""
        return self._writer

    def listen(self) -> None:
        """Start to read."""
        # With our own writing end open, the pipe would never end.
        os.close(self._writer)
        self._writer = -1
        self._loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        """Read the available output, then stop."""
        for _ in range(_MAX_LAST_CHUNKS):
            if self.ended.done() or not self._on_readable():
                break
        self._end()

    def _on_readable(self) -> bool:
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._end()
            return False
        self._sink(chunk)
        return len(chunk) == _CHUNK_BYTES

    def _end(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
        if not self.ended.done():
            self.ended.set_result(None)


def _open_pidfd(pid: int) -> int | None:
    """Open a descriptor that becomes readable when the process ends; None where the system has no pidfds."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
