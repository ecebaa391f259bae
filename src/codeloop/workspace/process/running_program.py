"""Programs to talk to, over stdin and stdout (language servers) or a descriptor (hosts), and programs that end."""

import asyncio
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from codeloop.schema.limits import MCP_STOP, SHELL_TERM_TIME
from codeloop.schema.wire import replace
from codeloop.workspace.process.child_process import Pipe
from codeloop.workspace.process.program_sandboxes import ProgramSandbox
from codeloop.workspace.process.sandboxed_program import SandboxedProcess
from codeloop.workspace.process.uncancelled import finish_uncancelled
from codeloop.workspace.sandbox.launched_process import Launch
from codeloop.workspace.workspace import Workspace

_MARK_VARIABLE = "CODELOOP_SERVER"
"""The variable by which a program and its processes are found in the table of processes."""
# It exists where processes are visible as files.
_PROC_FOLDER = Path("/proc/self")
_CHUNK_BYTES = 2**16
_PS_SECONDS = 5


class RunningProgram:
    """A running program. Its stderr goes to the `errors` function of `start_program`."""

    def __init__(self, process: SandboxedProcess, output: socket.socket, mark: str, errors: Pipe) -> None:
        self._process = process
        self._output = output
        self._mark = mark
        self._errors = errors
        self._pid = 0
        self._was_searched = False
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> None:
        """Open the streams. To be called before `read` and `write`."""
        self._streams = await asyncio.open_connection(sock=self._output)

    async def read(self) -> bytes:
        """Return the next bytes of its output; b"" at its end."""
        chunk = b""
        # An error is the program's end as well.
        with suppress(OSError):
            chunk = await self._streams[0].read(_CHUNK_BYTES) if self._streams is not None else b""
        self._process.notice_answer()
        if not chunk:
            with suppress(TimeoutError):
                async with asyncio.timeout(MCP_STOP.seconds):
                    await asyncio.shield(self._process.exited)
        return chunk

    def write(self, data: bytes) -> int:
        """Write without waiting. Returns the number of unsent bytes. Raises OSError if the program has ended."""
        if self._streams is None or self._streams[1].is_closing():
            raise BrokenPipeError
        self._streams[1].write(data)
        return self._streams[1].transport.get_write_buffer_size()

    @property
    def ending(self) -> str:
        """A description of how it ended; "" while it runs."""
        if not self._process.exited.done():
            return ""
        code = self._process.exited.result()
        if self._process.exceeded:
            return f"it used more than {self._process.exceeded}"
        return f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"

    async def measure_memory(self) -> int:
        """Return the memory in bytes of the program and its children; 0 if it is unknown."""
        # In a sandbox its process id is that of another namespace, so it is searched for once by its mark.
        if not _PROC_FOLDER.is_dir():
            return await asyncio.to_thread(_measure_by_ps, self._process.pid)
        if not self._pid and not self._was_searched:
            self._was_searched = True
            self._pid = _find_process(self._mark)
        total, pids = 0, [self._pid] if self._pid else []
        for pid in pids:
            total += _read_resident_bytes(pid)
            pids += _list_children(pid)
        return total

    async def close(self) -> None:
        """End it with all its processes, even when cancelled."""
        if self._streams is not None:
            self._streams[1].close()
        try:
            await finish_uncancelled(self._process.end(SHELL_TERM_TIME.seconds))
        finally:
            self._errors.close()


_CHANNEL_FD = 3
_MAX_ERROR_BYTES = 8_192


async def start_program(
    workspace: Workspace,
    launch: Launch,
    errors: Callable[[bytes], None],
    confinement: ProgramSandbox | None,
    *,
    channel_variable: str = "",
) -> RunningProgram:
    """Start a program to talk to. `errors` receives its other output. Raises OSError.

    `confinement`: its sandbox; None: it has none. `channel_variable`: tells the program which descriptor to talk over,
    while stdout and stderr go to `errors`; "": it talks over stdin and stdout.
    """
    mark = os.urandom(8).hex()
    environment = {**launch.environment, _MARK_VARIABLE: mark}
    pipe = Pipe(errors)
    ours, theirs = socket.socketpair()
    with ExitStack() as on_failure:
        for close in (pipe.close, ours.close):
            on_failure.callback(close)
        with theirs:
            descriptors = {0: theirs.fileno(), 1: theirs.fileno(), 2: pipe.writer}
            if channel_variable:
                environment[channel_variable] = str(_CHANNEL_FD)
                descriptors = {_CHANNEL_FD: theirs.fileno(), 1: pipe.writer, 2: pipe.writer}
            prepared_launch = replace(launch, environment=environment, descriptors=descriptors)
            process = await workspace.program_sandboxes.start(prepared_launch, confinement, is_server=True)
        on_failure.pop_all()
    pipe.listen()
    program = RunningProgram(process, ours, mark, pipe)
    await program.open()
    return program


class SandboxedResult(Struct, frozen=True):
    """The end of a program: its exit code (negative: the signal), its output, and its stderr."""

    code: int
    output: bytes
    stderr: str


async def run_sandboxed(
    workspace: Workspace, launch: Launch, stdin: bytes, max_bytes: int, confinement: ProgramSandbox | None
) -> SandboxedResult:
    """Run a program to its end with `stdin` as its input. At most `max_bytes` + 1 bytes of its output are kept.

    `confinement`: its sandbox; None: it has none. It is ended with all its processes when the caller is cancelled.
    Raises OSError when it can't be started, and its subclass SandboxUnavailable if a required sandbox does not work.
    """
    output, errors = bytearray(), bytearray()
    pipes = (
        Pipe(partial(_append_up_to, output, max_bytes + 1)),
        Pipe(partial(_append_up_to, errors, _MAX_ERROR_BYTES)),
    )
    with ExitStack() as closing:
        for pipe in pipes:
            closing.callback(pipe.close)
        stdin_file = closing.enter_context(tempfile.TemporaryFile())
        stdin_file.write(stdin)
        stdin_file.seek(0)
        descriptors = {0: stdin_file.fileno(), 1: pipes[0].writer, 2: pipes[1].writer}
        process = await workspace.program_sandboxes.start(replace(launch, descriptors=descriptors), confinement)
        try:
            for pipe in pipes:
                pipe.listen()
            code = await asyncio.shield(process.exited)
        finally:
            await finish_uncancelled(process.end(0))
    return SandboxedResult(code, bytes(output), errors.decode("utf-8", "replace"))


def _append_up_to(output: bytearray, max_bytes: int, chunk: bytes) -> None:
    output += chunk[: max_bytes - len(output)]


def _find_process(mark: str) -> int:
    """Return the id of the oldest process with a mark, as seen from outside its sandbox; 0 for none."""
    marker = f"{_MARK_VARIABLE}={mark}".encode()
    with suppress(OSError):
        for pid in sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
            with suppress(OSError):
                if marker in Path(f"/proc/{pid}/environ").read_bytes():
                    return pid
    return 0


def _list_children(pid: int) -> list[int]:
    with suppress(OSError, ValueError):
        texts = (file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children"))
        return [int(child) for text in texts for child in text.split()]
    return []


def _read_resident_bytes(pid: int) -> int:
    with suppress(OSError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _measure_by_ps(top: int) -> int:
    """Return the memory in bytes of a process and all below it, by `ps`. For systems without /proc and namespaces."""
    try:
        rows = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid=,rss="], capture_output=True, timeout=_PS_SECONDS, check=True
        ).stdout
        table = [(int(pid), int(parent), int(size)) for pid, parent, size in map(bytes.split, rows.splitlines())]
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
    total, pids = 0, [top]
    for each in pids:
        total += sum(size * 1024 for pid, _, size in table if pid == each)
        pids += [pid for pid, parent, _ in table if parent == each]
    return total
