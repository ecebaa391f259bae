"""Programs: `Program` starts one, talks to it and ends it;
`run_program` runs one to its end and returns its result.

They start as children of this process; `start` may start them elsewhere:
`workspace/process/program_sandboxes.py` does in a sandbox. No process of a program is left when it
was ended, also when the caller was cancelled.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from codeloop.kit.child_process import ChildProcess, Launch, Pipe, finish_uncancelled
from codeloop.kit.processes import (
    has_process_files,
    list_processes,
    measure_memory,
    measure_memory_by_ps,
)

_MARK_VARIABLE = "CODELOOP_SERVER"
_CHUNK_BYTES = 2**16
_CHANNEL_FD = 3


class StartedProcess(Protocol):
    """A program that was started. `exceeded`: the bound of its sandbox for which it was ended,
    in words; "".
    """

    @property
    def pid(self) -> int:
        """Its process id, as the place where it runs counts."""
        ...

    @property
    def exited(self) -> "asyncio.Future[int]":
        """Its exit code (negative: the signal), once it has ended."""
        ...

    @property
    def exceeded(self) -> str:
        """The bound for which it was ended, in words; ""."""
        ...

    def notice_answer(self) -> None:
        """Note that it has answered: what its sandbox can't keep by mounts is checked soon."""
        ...

    async def end(self, grace_seconds: float, /) -> object:
        """End it with all its processes: TERM, after `grace_seconds` KILL.
        Also after its own end.
        """
        ...


StartProcess = Callable[[Launch], Awaitable[StartedProcess]]
"""Starts a program. Raises OSError."""


async def start_child(launch: Launch) -> ChildProcess:
    """Start a program as a child of this process. Raises OSError."""
    return ChildProcess(launch)


class ProgramResult(Struct, frozen=True):
    """The result of a program that ran to its end.

    `code`: its exit code, negative for the signal that ended it. `stdout`: at most one chunk more
    than its bound, and empty if it was passed on. `stop_reason`: it was ended after its time, or
    since it had written enough.
    """

    code: int
    stdout: bytes
    stderr: bytes
    stop_reason: Literal["", "enough", "time"] = ""

    @property
    def is_late(self) -> bool:
        """Whether it was ended after its time, or by the limit of processor time
        that it has set itself.
        """
        return self.stop_reason == "time" or self.code == -signal.SIGXCPU

    @property
    def error_text(self) -> str:
        """Its stderr as text."""
        return self.stderr.decode("utf-8", "replace")


async def run_program(
    launch: Launch,
    start: StartProcess = start_child,
    *,
    feed: Callable[[bytes], bool] | None = None,
    feed_errors: Callable[[bytes], object] | None = None,
) -> ProgramResult:
    """Run a program to its end. Raises OSError when it can't be started.

    `feed` gets the pieces of its stdout, and returns whether that is enough: then it is ended.
    `feed_errors` gets those of its stderr. What is fed is not in the result.
    """
    output, errors = bytearray(), bytearray()
    stop_reason: Literal["", "enough", "time"] = ""
    is_enough = asyncio.Event()

    def keep_output(chunk: bytes) -> bool:
        output.extend(chunk)
        return len(output) > launch.max_bytes

    def take_output(chunk: bytes) -> None:
        if not is_enough.is_set() and (feed or keep_output)(chunk):
            is_enough.set()

    def keep_errors(chunk: bytes) -> None:
        errors.extend(chunk[: launch.max_error_bytes - len(errors)])

    with ExitStack() as closing:
        pipes = list[Pipe]()
        for sink in (take_output, feed_errors or keep_errors):
            pipes.append(Pipe(sink))
            closing.callback(pipes[-1].close)
        descriptors = {1: pipes[0].writer, 2: pipes[1].writer}
        if launch.stdin:
            descriptors[0] = _make_input(launch.stdin)
            closing.callback(os.close, descriptors[0])
        process = await start(replace(launch, descriptors=descriptors))
        grace_seconds = launch.grace_seconds
        enough = asyncio.ensure_future(is_enough.wait())
        try:
            for pipe in pipes:
                pipe.listen()
            done, _ = await asyncio.wait(
                (process.exited, enough),
                timeout=launch.seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                stop_reason = "time"
            else:
                # What it has left behind is of no use.
                grace_seconds = 0
        finally:
            enough.cancel()
            await finish_uncancelled(process.end(grace_seconds))
    if is_enough.is_set() and not stop_reason:
        stop_reason = "enough"
    return ProgramResult(process.exited.result(), bytes(output), bytes(errors), stop_reason)


class MessageTooLong(Exception):
    """A program sent more in one line than is read."""


class LineBuffer:
    """Joins the pieces of an output into lines.
    `size`: the bytes of the line that has not ended yet.
    """

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes] = []

    def take_lines(self, chunk: bytes) -> list[bytes]:
        """Take a piece of the output. Returns the lines that it ends, without their ends."""
        # Joined once the line is whole: repeated concatenation would be quadratic.
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts, self.size = [], 0
        self._parts.append(rest)
        self.size += len(rest)
        return lines


class Program:
    """A running program to talk to. `start` makes one."""

    def __init__(
        self,
        process: StartedProcess,
        launch: Launch,
        errors: Pipe,
        connections: Sequence[tuple[asyncio.StreamReader, asyncio.StreamWriter]],
        end_seconds: float,
    ) -> None:
        self._process = process
        self._launch = launch
        self._errors = errors
        self._writer = connections[0][1]
        self._reader = connections[-1][0]
        # Kept open as long as its output is read.
        self._output = connections[-1][1]
        self._end_seconds = end_seconds
        self._outer_pid = 0

    @classmethod
    async def start(
        cls,
        launch: Launch,
        feed_errors: Callable[[bytes], object],
        start: StartProcess = start_child,
        *,
        channel_variable: str = "",
        end_seconds: float = 1,
    ) -> "Program":
        """Start a program. `feed_errors` gets its other output. Raises OSError.

        `channel_variable`: tells the program which descriptor to talk over, while its stdout and
        stderr go to `feed_errors`; "": it talks over stdin and stdout. `end_seconds`: how long its
        end is waited for once its output has ended.
        """
        pipe = Pipe(feed_errors)
        connections = list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()
        with ExitStack() as on_failure, ExitStack() as closing:
            on_failure.callback(pipe.close)
            theirs = list[int]()
            # One socket for both directions of a channel. Two for stdin and stdout,
            # so that its input can end first.
            for _ in range(1 if channel_variable else 2):
                ours, other = socket.socketpair()
                closing.callback(other.close)
                connection = await asyncio.open_connection(sock=ours)
                on_failure.callback(connection[1].close)
                connections.append(connection)
                theirs.append(other.fileno())
            if channel_variable:
                launch = replace(
                    launch, environment={**launch.environment, channel_variable: str(_CHANNEL_FD)}
                )
                descriptors = {_CHANNEL_FD: theirs[0], 1: pipe.writer, 2: pipe.writer}
            else:
                descriptors = {0: theirs[0], 1: theirs[1], 2: pipe.writer}
            launch = replace(launch, descriptors=descriptors)
            process = await start(launch)
            on_failure.pop_all()
        pipe.listen()
        return cls(process, launch, pipe, connections, end_seconds)

    async def read(self) -> bytes:
        """Return the next bytes of its output; b"" at its end."""
        chunk = b""
        # An error is the program's end as well.
        with suppress(OSError):
            chunk = await self._reader.read(_CHUNK_BYTES)
        self._process.notice_answer()
        if not chunk:
            # The end of the output comes a moment before the exit code, which says more.
            await asyncio.wait([self._process.exited], timeout=self._end_seconds)
        return chunk

    async def read_lines(self, max_bytes: int) -> AsyncGenerator[bytes]:
        """Yield the lines of its output until its end.
        Raises MessageTooLong for one of more than `max_bytes`.
        """
        lines = LineBuffer()
        while chunk := await self.read():
            for line in lines.take_lines(chunk):
                yield line
            if lines.size > max_bytes:
                raise MessageTooLong(f"it sent a message of more than {max_bytes:,} bytes")

    def write(self, data: bytes) -> int:
        """Write without waiting. Returns the number of unsent bytes.
        Raises OSError if the program has ended.
        """
        if self._writer.is_closing():
            raise BrokenPipeError
        self._writer.write(data)
        return self._writer.transport.get_write_buffer_size()

    async def drain(self) -> None:
        """Wait while much is unsent, as the program reads nothing.
        Raises OSError if it has closed its input.
        """
        await self._writer.drain()

    @property
    def ending(self) -> str:
        """A description of how it ended; "" while it runs."""
        if not self._process.exited.done():
            return ""
        if self._process.exceeded:
            return f"it used more than {self._process.exceeded}"
        return f"it {describe_ending(self._process.exited.result())}"

    async def measure_memory(self) -> int:
        """Return the memory in bytes of the program and its children; 0 if it is unknown.

        It is known of programs whose environment is of `mark_environment`.
        """
        if not has_process_files():
            return await asyncio.to_thread(measure_memory_by_ps, self._process.pid)
        # In a sandbox its process id is that of another namespace,
        # so it is searched for once by its mark.
        if not self._outer_pid:
            marker = f"{_MARK_VARIABLE}={self._launch.environment.get(_MARK_VARIABLE, 'none')}"
            self._outer_pid = min(
                (each.pid for each in list_processes(marker) if each.has_marker), default=-1
            )
        return measure_memory(self._outer_pid) if self._outer_pid > 0 else 0

    async def close(self, patience_seconds: float = 0) -> None:
        """End it with all its processes, even when cancelled.
        Its input ends `patience_seconds` before.
        """
        self._writer.close()
        try:
            await finish_uncancelled(self._end(patience_seconds))
        finally:
            self._output.close()
            self._errors.close()

    async def _end(self, patience_seconds: float) -> None:
        if patience_seconds:
            await asyncio.wait([self._process.exited], timeout=patience_seconds)
        await self._process.end(self._launch.grace_seconds)


def mark_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Add a variable by which a program and its processes are found in the table of processes."""
    return {**environment, _MARK_VARIABLE: os.urandom(8).hex()}


def describe_ending(code: int) -> str:
    """Return how a program ended, by its exit code."""
    return f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"


def _make_input(data: bytes) -> int:
    """Return a descriptor of a file without a name that holds `data`, to be read from its start."""
    if sys.platform == "linux":
        fd = os.memfd_create("stdin")
    else:
        import tempfile

        fd, path = tempfile.mkstemp()
        Path(path).unlink()
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
