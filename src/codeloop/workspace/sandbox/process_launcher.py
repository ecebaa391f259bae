"""The client of the launcher (`workspace/sandbox/launcher/main.py`): starts programs,
waits for them, ends them.
"""

import asyncio
import errno
import os
import re
import select
import socket
import sys
from array import array
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import codeloop
from codeloop.kit.child_process import ChildProcess, Launch, finish_uncancelled
from codeloop.kit.processes import make_undumpable
from codeloop.schema.bounds.sandbox import SANDBOX_START
from codeloop.schema.installation import check_package_file
from codeloop.schema.limits import LAUNCHER_ANSWER
from codeloop.workspace.sandbox.launched_process import (
    ANSWER_BYTES,
    LaunchedProcess,
    resolve_future,
)
from codeloop.workspace.sandbox.launcher.descendants import KILL, list_descendants, send_signal
from codeloop.workspace.sandbox.launcher.messages import (
    COMMAND_KIND,
    LIST_PORTS,
    LISTEN_KIND,
    REACH_KIND,
    SANDBOX_KIND,
)

_LAUNCHER_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from codeloop.workspace.sandbox.launcher.main import {function}; "
    "{function}(int(sys.argv[2]), *sys.argv[3:])"
)
_RECOVERY_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; "
    "from codeloop.workspace.git.planted.recovery import recover_killed; recover_killed(Path(sys.argv[2]))"
)
_PACKAGE_ROOT = Path(codeloop.__file__).parents[1]
# The answer of a new sandbox.
_READY = rb"ready ([a-z ]*)\n\Z"
_LAUNCHER_FILE = Path(__file__).with_name("launcher") / "main.py"
# The longest list of ports.
_PORTS_BYTES = 1_024
# The time between two rounds of killing: processes may fork meanwhile.
_KILL_ROUND_SECONDS = 0.02


def protect_own_memory(environment: Mapping[str, str]) -> None:
    """Make this process's memory unreadable if a program is started without
    some of our variables.
    """
    # These hold keys, and a program of the same user could read them in /proc.
    if os.environ.keys() - environment.keys():
        make_undumpable()


class ProcessStarter:
    """Starts programs on the machine or in one sandbox.

    `mark`: the beginning of their marks, see `MARK_VARIABLE` in `launcher/descendants.py`; `lacks`:
    what the sandbox does without on this machine, see `Confinement` in `launcher/confine.py`.
    """

    def __init__(
        self, mark: str, control: socket.socket | None = None, lacks: frozenset[str] = frozenset()
    ) -> None:
        self.mark = mark
        self.lacks = lacks
        self._control = control
        self._count = 0
        self._start_count = 0
        self._processes: set[LaunchedProcess] = set()
        self.own_ports: set[int] = set()
        """The ports of our own listeners (`open_listener`)."""

    @contextmanager
    def mark_busy(self) -> Generator[None, None, None]:
        """Make `is_idle` false while the caller prepares to start a program.
        `start` does so itself.
        """
        self._start_count += 1
        try:
            yield
        finally:
            self._start_count -= 1

    @property
    def is_idle(self) -> bool:
        """Whether no program runs here and nobody is about to start one."""
        return not self._start_count and all(process.has_ended for process in self._processes)

    @property
    def is_lost(self) -> bool:
        """Whether no process serves requests here: it has ended,
        for example since memory was short, or never began.
        """
        if self._control is None:
            return True
        events = select.poll()
        # The mask 0 reports only that the other end is closed.
        events.register(self._control, 0)
        return bool(events.poll(0))

    async def start(self, launch: Launch) -> LaunchedProcess:
        """Start a program in a new session. Raises OSError when it, or the launcher,
        can't be started.
        """
        self._count += 1
        request = (
            f"{self.mark}.{self._count}.",
            str(launch.directory),
            " ".join(map(str, launch.descriptors)),
            str(len(launch.arguments)),
            *launch.arguments,
            *(f"{name}={value}" for name, value in launch.process_environment.items()),
        )
        with self.mark_busy():
            channel = await self._send_request(
                COMMAND_KIND, request, tuple(launch.descriptors.values())
            )
            process = LaunchedProcess(channel, self.kill_all)
            self._processes = {each for each in self._processes if not each.has_ended} | {process}
        try:
            await process.wait_for_start(launch)
        except asyncio.CancelledError:
            # The caller has no process that it could end itself.
            await finish_uncancelled(process.end())
            raise
        return process

    async def open_listener(self, port: int) -> socket.socket:
        """Open a socket that listens on 127.0.0.1 of the network of programs here. `port` 0: any.
        Raises OSError.
        """
        channel = await self._send_request(LISTEN_KIND, (str(port),))
        with channel:
            await _wait_readable(channel)
            _, fds, _, _ = socket.recv_fds(channel, 1, 1)
        if not fds:
            raise OSError(errno.EADDRINUSE, f"port {port} can't be listened on where commands run")
        listener = socket.socket(fileno=fds[0])
        self.own_ports.add(listener.getsockname()[1])
        return listener

    async def open_reach(self) -> "PortReach":
        """Return a connection that lists and reaches the ports that programs here listen on.
        Raises OSError.
        """
        return PortReach(await self._send_request(REACH_KIND, ("",)))

    async def make_sandbox(
        self, rows: Sequence[str], descriptors: Sequence[int] = ()
    ) -> "ProcessStarter":
        """Make a sandbox inside this place. Returns its starter.
        Raises OSError with the reason of a failure.

        `rows`: the plan, as in `launcher/plan.py`; `descriptors`: they stay open in the
        sandbox as long as it lives.
        """
        ours, theirs = socket.socketpair()
        with ExitStack() as on_failure:
            on_failure.callback(ours.close)
            with theirs:
                channel = await self._send_request(
                    SANDBOX_KIND, (self.mark, *rows), (theirs.fileno(), *descriptors)
                )
            with channel:
                await _wait_readable(channel)
                answer = channel.recv(ANSWER_BYTES)
            lacks = _read_answer(answer)
            on_failure.pop_all()
        return ProcessStarter(self.mark, ours, lacks)

    async def make_wrapped_sandbox(
        self, wrap: Callable[[Sequence[str]], Sequence[str]], rows: Sequence[str]
    ) -> "ProcessStarter":
        """Have another program make a sandbox, by the command that `wrap` returns for ours.
        Else as `make_sandbox`.
        """
        ours, theirs = socket.socketpair()
        channel, program_end = socket.socketpair()
        with ExitStack() as on_failure, channel:
            on_failure.callback(ours.close)
            with theirs, program_end:
                arguments = wrap(make_launcher_command("serve_inside", "3", self.mark))
                # The program's error messages (2) come back on the same socket as the answer.
                launch = Launch(
                    arguments=arguments,
                    directory=Path("/"),
                    environment={},
                    descriptors={3: program_end.fileno(), 2: program_end.fileno()},
                )
                channel.settimeout(0)
                await self.start(launch)
                await _send(channel, (self.mark, *rows), (theirs.fileno(),))
            # An error message of that program may come in pieces.
            # The first value only lets the loop begin.
            answer, chunk = b"", b"-"
            while chunk and not re.search(_READY, answer):
                await _wait_readable(channel)
                try:
                    chunk = channel.recv(ANSWER_BYTES)
                except ConnectionError:
                    # The program ended before it read the plan.
                    chunk = b""
                answer = (answer + chunk)[-ANSWER_BYTES:]
            lacks = _read_answer(answer)
            on_failure.pop_all()
        return ProcessStarter(self.mark, ours, lacks)

    async def end(self) -> None:
        """End everything that still runs here. In a sandbox, nothing can be started any more."""
        await asyncio.gather(*(process.end() for process in self._processes))
        self._close_control()

    async def kill_all(self) -> None:
        """Kill all that runs here, by closing the socket: the sandbox's first process then
        ends everything below it.
        """
        self._close_control()

    def _close_control(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    async def _send_request(
        self, kind: bytes, request: Sequence[str], fds: Sequence[int] = ()
    ) -> socket.socket:
        """Send a request. Returns the socket for its answers.
        `kind`: one of those in `launcher/messages.py`.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        with ExitStack() as on_failure:
            on_failure.callback(ours.close)
            with theirs:
                self._pass_socket(kind, theirs)
            await _send(ours, request, fds)
            on_failure.pop_all()
        return ours

    def _pass_socket(self, kind: bytes, channel: socket.socket) -> None:
        """Pass a socket to the process that serves requests. Raises OSError when that has ended."""
        if self._control is None:
            raise BrokenPipeError(errno.EPIPE, "what starts commands has been ended")
        socket.send_fds(self._control, [kind], [channel.fileno()])


class PortReach:
    """Lists and reaches the ports that programs of a sandbox listen on, one request at a time."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = asyncio.Lock()

    async def list_ports(self) -> list[int]:
        """Return the ports on which something listens that loopback reaches there.
        Raises OSError.
        """
        answer, _ = await self._ask(LIST_PORTS)
        return [int(port) for port in answer.split()]

    async def connect(self, port: int) -> socket.socket | None:
        """Return a socket that is connected to a port there; None: nothing takes the connection.
        Raises OSError.
        """
        _, fds = await self._ask(str(port).encode())
        return socket.socket(fileno=fds[0]) if fds else None

    def close(self) -> None:
        """End the process that answers."""
        self._channel.close()

    async def _ask(self, request: bytes) -> tuple[bytes, list[int]]:
        async with self._lock:
            self._channel.sendall(request)
            await _wait_readable(self._channel)
            answer, fds, _, _ = socket.recv_fds(self._channel, _PORTS_BYTES, 1)
        if not answer:
            raise BrokenPipeError(errno.EPIPE, "what reaches the ports of a sandbox has ended")
        return answer, fds


class ProcessLauncher(ProcessStarter):
    """Starts programs on the machine through the launcher,
    a small process that ends them if this one dies.
    """

    def __init__(self) -> None:
        super().__init__(os.urandom(8).hex())
        self._child: ChildProcess | None = None
        self.marks: Path | None = None
        """The folder with marks of this process (`git/planted/recovery.py`),
        which the launcher looks at at its end.
        """

    async def close(self) -> None:
        """End everything that still runs, then the launcher."""
        await self.end()
        if self._child is None:
            return
        await asyncio.wait([self._child.exited], timeout=LAUNCHER_ANSWER.seconds)
        if not self._child.exited.done():
            await self._child.end()

    async def kill_all(self) -> None:
        """Kill everything below the launcher, even when a command has stopped it (SIGSTOP),
        and then the launcher.
        """
        self._close_control()
        if self._child is None:
            return
        until = asyncio.get_running_loop().time() + LAUNCHER_ANSWER.seconds
        while (
            living := list_descendants(top_pid=self._child.pid)
        ) and asyncio.get_running_loop().time() < until:
            send_signal(living, KILL)
            await asyncio.sleep(_KILL_ROUND_SECONDS)
        await self._child.end()

    def _pass_socket(self, kind: bytes, channel: socket.socket) -> None:
        """Pass a socket to the launcher. A new one is started when there is
        none or it was killed.
        """
        try:
            super()._pass_socket(kind, channel)
        except OSError:
            self._close_control()
        else:
            return
        self._control = self._start_launcher()
        super()._pass_socket(kind, channel)

    def _start_launcher(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        recovery: tuple[str, ...] = ("",)
        if self.marks is not None:
            words = (
                sys.executable,
                "-I",
                "-c",
                _RECOVERY_PROGRAM,
                str(_PACKAGE_ROOT),
                str(self.marks),
            )
            recovery = (f"{self.marks}/{os.getpid()}-", *words)
        with theirs:
            command = (*make_launcher_command("main", str(theirs.fileno()), self.mark), *recovery)
            # Commands can read the launcher's environment in /proc, so it must hold no key.
            self._child = ChildProcess(Launch(command, "/", {}, {theirs.fileno(): theirs.fileno()}))
        return ours


def make_launcher_command(function: str, descriptor: str, mark: str) -> tuple[str, ...]:
    """Return the command that runs a function of `launcher/main.py`,
    which gets a descriptor and the mark.
    """
    check_package_file(_LAUNCHER_FILE)
    # `-I -S`: no variable or site package of the user changes what runs here,
    # and it starts faster without them.
    return (
        sys.executable,
        "-I",
        "-S",
        "-c",
        _LAUNCHER_PROGRAM.format(function=function),
        str(_PACKAGE_ROOT),
        descriptor,
        mark,
    )


def _read_answer(answer: bytes) -> frozenset[str]:
    """Return what a new sandbox says that it lacks.
    Raises OSError with the reason if it is not ready.
    """
    match = re.fullmatch(_READY, answer)
    if match is None:
        raise OSError(
            answer.decode(errors="replace").removeprefix("failed ").strip() or "it ended at once"
        )
    return frozenset(match[1].decode().split())


async def _send(channel: socket.socket, request: Sequence[str], fds: Sequence[int]) -> None:
    """Send a message in the form that `receive` in `launcher/messages.py` reads."""
    data = os.fsencode("\0".join(request))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
    channel.sendmsg([len(data).to_bytes(4, "big")], rights)
    await asyncio.get_running_loop().sock_sendall(channel, data)


async def _wait_readable(channel: socket.socket) -> None:
    """Wait until a socket has data or was closed. Raises TimeoutError after SANDBOX_START."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(channel, resolve_future, ready, None)
    try:
        # Long: the launcher itself may have to start first, and a kind of sandbox that does not
        # answer in time is not tried again.
        async with asyncio.timeout(SANDBOX_START.seconds):
            await ready
    finally:
        loop.remove_reader(channel)
