"""Starts the program of a local server, in a sandbox or without, and reads and writes its lines."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import ExitStack, suppress

from msgspec import Struct

from codeloop.extend.mcp.transport.launch_spec import LaunchSpec
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import MCP_MESSAGE, MCP_STOP, SHELL_TERM_TIME
from codeloop.workspace.process.child_process import Pipe
from codeloop.workspace.process.program_log import ProgramLog
from codeloop.workspace.process.program_sandboxes import ProgramSandbox, ProgramSandboxes
from codeloop.workspace.process.sandboxed_program import SandboxedProcess
from codeloop.workspace.process.uncancelled import finish_uncancelled
from codeloop.workspace.sandbox.launched_process import Launch
from codeloop.workspace.sandbox.sandboxes import SandboxUnavailable


class MessageTooLong(CodeloopError):
    """A server sent more in one message than is read."""


class ServerProcess:
    """A running program. It reads lines from stdin and writes lines to stdout; its stderr goes to the log."""

    def __init__(self, process: SandboxedProcess, streams: "_Streams", errors: Pipe) -> None:
        self._process = process
        self._streams = streams
        self._errors = errors

    async def read_lines(self) -> AsyncGenerator[bytes]:
        """Yield the lines of its stdout until it ends. Raises MessageTooLong."""
        rest = bytearray()
        while chunk := await self._streams.reader.read(2**16):
            rest += chunk
            self._process.notice_answer()
            if b"\n" in chunk:
                # Split only when a line has ended, so that a long message is not searched again with each chunk.
                *lines, last = bytes(rest).split(b"\n")
                rest = bytearray(last)
                for line in lines:
                    yield line
            elif len(rest) > MCP_MESSAGE.value:
                raise MessageTooLong(f"it sent a message of more than {MCP_MESSAGE.value:,} bytes")

    async def write(self, line: bytes) -> None:
        """Write a line to its stdin; waits while it reads nothing. Raises OSError when it has closed it."""
        self._streams.writer.write(line + b"\n")
        await self._streams.writer.drain()

    @property
    def exit_code(self) -> int | None:
        """The exit code (negative: the signal); None while it runs."""
        return self._process.exited.result() if self._process.exited.done() else None

    async def wait_briefly(self, seconds: float) -> None:
        """Wait for its end, for so long at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._process.exited)

    async def close(self) -> None:
        """End the program: close its input, then send signals to its process tree. A cancelled caller waits, too."""
        # The end of its input is how an MCP server is asked to stop.
        self._streams.writer.close()
        try:
            await finish_uncancelled(self._end())
        finally:
            self._streams.output.close()
            self._errors.close()

    async def _end(self) -> None:
        await self.wait_briefly(MCP_STOP.seconds)
        await self._process.end(SHELL_TERM_TIME.seconds)


class _Streams(Struct, frozen=True):
    """Our ends of a program's stdin and stdout. `output` keeps the connection that `reader` reads from."""

    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    output: asyncio.StreamWriter


async def start_server(program_sandboxes: ProgramSandboxes, spec: LaunchSpec, log: ProgramLog) -> ServerProcess:
    """Start a program. Raises CodeloopError."""
    log.record_start()
    errors = Pipe(log.feed)
    ours_in, theirs_in = socket.socketpair()
    ours_out, theirs_out = socket.socketpair()
    # Whatever fails below, no descriptor stays open.
    with ExitStack() as on_failure:
        for close in (errors.close, ours_in.close, ours_out.close):
            on_failure.callback(close)
        with theirs_in, theirs_out:
            descriptors = {0: theirs_in.fileno(), 1: theirs_out.fileno(), 2: errors.writer}
            try:
                launch = Launch(spec.words, spec.folder, spec.environment, descriptors, spec.named_variables)
                confinement = ProgramSandbox(spec.profile) if spec.profile is not None else None
                process = await program_sandboxes.start(launch, confinement, is_server=True)
            except SandboxUnavailable as error:
                raise CodeloopError(str(error)) from error
            except OSError as error:
                where = error.filename or spec.words[0]
                raise CodeloopError(f"{where} can't be started: {error.strerror}.") from error
        # The process is started: its streams are closed by `ServerProcess` now.
        on_failure.pop_all()
    errors.listen()
    _, writer = await asyncio.open_connection(sock=ours_in)
    reader, output = await asyncio.open_connection(sock=ours_out)
    return ServerProcess(process, _Streams(writer, reader, output), errors)
