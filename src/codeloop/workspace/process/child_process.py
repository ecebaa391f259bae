"""Child processes: started cheaply (vfork, no thread), with their exit and output as events of the loop."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_CHUNK = 65536
_LAST_CHUNKS = 64


class ChildProcess:
    """A running process that leads a session of its own. `exited` resolves to its code (negative: the signal)."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self.pid = popen.pid
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        fd = _open_pidfd(popen.pid)
        if fd is None:
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
        self._settle(self._popen.wait())

    def _wait(self) -> None:
        code = self._popen.wait()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._settle, code)

    def _settle(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)


def spawn(
    command: Sequence[str | bytes],
    *,
    directory: Path,
    environment: Mapping[str, str],
    output: int,
    errors: int | None = None,
    pass_fds: Sequence[int] = (),
) -> ChildProcess:
    """Start a process in a new session with nothing on stdin, writing to the descriptors `output` and `errors`.

    `errors` is where stderr goes; None: to `output` too. Raises OSError when it can't be started.
    """
    popen = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output if errors is None else errors,
        start_new_session=True,
        pass_fds=pass_fds,
    )
    return ChildProcess(popen)


class Pipe:
    """The reading end of a pipe: passes chunks to `sink`; `ended`: every writer is gone, or it was closed."""

    def __init__(self, sink: Callable[[bytes], None]) -> None:
        self._fd, self._writer = os.pipe()
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(self._fd, False)

    @property
    def writer(self) -> int:
        """The descriptor to hand to a child before `listen`."""
        return self._writer

    def listen(self) -> None:
        """Close our own writing end and start to read."""
        os.close(self._writer)
        self._writer = -1
        self._loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        """Read what is available now, then stop."""
        for _ in range(_LAST_CHUNKS):
            if self.ended.done() or not self._on_readable():
                break
        self._end()

    def _on_readable(self) -> bool:
        try:
            chunk = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._end()
            return False
        self._sink(chunk)
        return len(chunk) == _CHUNK

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
    """Open a descriptor that becomes readable at the process's end; None where the system has none."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
