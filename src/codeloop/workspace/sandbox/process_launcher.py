"""The client of the launcher: starts commands through it, waits for them and ends them."""

import asyncio
import errno
import os
import re
import select
import socket
import subprocess
import sys
from array import array
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

import codeloop
from codeloop.kit.processes import make_undumpable
from codeloop.schema.bounds.sandbox import LAUNCHER_TIME
from codeloop.schema.limits import LAUNCHER_ANSWER, SHELL_TERM_TIME
from codeloop.workspace.process.child_process import ChildProcess
from codeloop.workspace.sandbox.launcher.descendants import KILL, list_descendants, send_signal

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from codeloop.workspace.sandbox.launcher.main import {function}; "
    "{function}(int(sys.argv[2]), sys.argv[3])"
)
_ROOT = Path(codeloop.__file__).parents[1]
MARK = "CODELOOP_CHILD"
"""The variable that marks a command's processes where the system has no subreaper."""
_ANSWER_BYTES = 256  # of all answers: they come from a sandbox, so they must not grow for ever
_KILL_ROUND_SECONDS = 0.02  # between two rounds of killing, for processes that fork meanwhile
_ANSWER = re.compile(rb"(started|failed|exit|ended|stopped) (-?[0-9]{1,10})(?: (directory|program|memory|processes))?")
_BOUNDS = {b"memory": "{:,} MB of memory", b"processes": "{:,} processes and threads"}
T = TypeVar("T")


def keep_from(environment: Mapping[str, str]) -> None:
    """Make our memory unreadable when a program's environment lacks variables of ours: it could read them there."""
    if os.environ.keys() - environment.keys():
        make_undumpable()


class Launch(Struct, frozen=True):
    """A program to start. `arguments`: its absolute path first.

    `descriptors`: number in the program -> descriptor of ours. Its stdin is empty unless there is one for it.
    """

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    descriptors: Mapping[int, int]


class LaunchedProcess:
    """A process that the launcher started. `exited` resolves to its code (negative: the signal).

    `exceeded`: the bound for which it was ended, in words. `abandon`: kills it where its supervisor does not answer.
    """

    def __init__(self, channel: socket.socket, abandon: Callable[[], Awaitable[None]]) -> None:
        self.pid = 0
        self.exceeded = ""
        self._channel = channel
        self._abandon = abandon
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
                failed, what = await asyncio.shield(self._started)
        except TimeoutError:
            await self._give_up()
            failed, what = errno.EIO, b""
        if failed:
            at_fault = str(launch.directory) if what == b"directory" else launch.arguments[0]
            raise OSError(failed, os.strerror(failed), at_fault)

    async def end(self, grace: float = SHELL_TERM_TIME.seconds, *, notice: float = 0) -> int:
        """End all its processes: INT, TERM after `notice` seconds, KILL after `grace` more. Returns their number."""
        with suppress(OSError):  # it has ended: the reader gets its exit code
            self._channel.send(f"end {grace * 1000:.0f} {notice * 1000:.0f}\n".encode())
        try:
            async with asyncio.timeout(notice + grace + LAUNCHER_TIME.seconds):
                return await asyncio.shield(self._ended)
        except TimeoutError:
            await self._give_up()
            return await self._ended

    @property
    def is_gone(self) -> bool:
        """Return whether nothing is left of it."""
        return self._ended.done()

    def _on_readable(self) -> None:
        try:
            chunk = self._channel.recv(_ANSWER_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        *lines, self._answers = (self._answers + chunk).split(b"\n")
        for line in lines:
            self._handle_answer(line)
        if not chunk or len(self._answers) > _ANSWER_BYTES:
            self._settle_all()

    def _handle_answer(self, line: bytes) -> None:
        """Handle one answer. It may come from inside a sandbox, so it is untrusted."""
        match = _ANSWER.fullmatch(line)
        if match is None:
            return
        value = int(match[2])
        match match[1]:
            case b"started":
                self.pid = value
                _settle(self._started, (0, b""))
            case b"failed":
                _settle(self._started, (value, match[3]))
                self._settle_all()
            case b"stopped":
                self.exceeded = _BOUNDS.get(match[3] or b"", "").format(value)
            case b"exit":
                _settle(self.exited, value)
            case _:
                _settle(self._ended, value)
                self._settle_all()

    async def _give_up(self) -> None:
        """Kill it without its supervisor, which does not answer: it was stopped, or gets no processor time."""
        await self._abandon()
        self._settle_all()

    def _settle_all(self) -> None:
        """Resolve the pending futures: the supervisor has ended, and with it all its processes."""
        if self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel)
            self._channel.close()
        _settle(self._started, (errno.EIO, b""))
        _settle(self.exited, -9)
        _settle(self._ended, 0)


def _settle(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


class Forker:
    """Starts programs, on the machine or in one sandbox. `mark`: the prefix of their values of `MARK`."""

    def __init__(self, mark: str, control: socket.socket | None = None) -> None:
        self.mark = mark
        self._control = control
        self._count = 0
        self._users = 0
        self._processes: set[LaunchedProcess] = set()

    @contextmanager
    def mark_busy(self) -> Generator[None, None, None]:
        """Mark it as busy for a caller that is about to start something; `start` does so itself."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1

    @property
    def is_idle(self) -> bool:
        """Return whether nothing runs and nobody is about to start something."""
        return not self._users and all(process.is_gone for process in self._processes)

    @property
    def is_lost(self) -> bool:
        """Return whether the launcher's process has ended (for example, killed when memory was short)."""
        return self._control is None or _is_hung_up(self._control)

    async def start(self, launch: Launch) -> LaunchedProcess:
        """Start a program in a new session. Raises OSError when it, or the launcher, can't be started."""
        self._count += 1
        request = (
            f"{self.mark}.{self._count}.",
            str(launch.directory),
            " ".join(map(str, launch.descriptors)),
            str(len(launch.arguments)),
            *launch.arguments,
            *(f"{name}={value}" for name, value in launch.environment.items()),
        )
        with self.mark_busy():
            channel = await self._ask(b"c", request, tuple(launch.descriptors.values()))
            process = LaunchedProcess(channel, self.abandon)
            self._processes = {each for each in self._processes if not each.is_gone} | {process}
        try:
            await process.wait_for_start(launch)
        except asyncio.CancelledError:
            await finish_uncancelled(process.end())  # the caller has no process that it could end
            raise
        return process

    async def listener(self, port: int) -> socket.socket:
        """Return a socket that listens on 127.0.0.1 of the network here. `port` 0: any. Raises OSError."""
        channel = await self._ask(b"l", (str(port),))
        with channel:
            await _wait_readable(channel)
            _, fds, _, _ = socket.recv_fds(channel, 1, 1)
        if not fds:
            raise OSError(errno.EADDRINUSE, f"port {port} can't be listened on where commands run")
        return socket.socket(fileno=fds[0])

    async def enter(self, rows: Sequence[str], descriptors: Sequence[int] = ()) -> "Forker":
        """Return a Forker in a new sandbox, made from the plan's rows. Raises OSError with the reason of a failure.

        `descriptors`: descriptors that stay open for as long as it lives.
        """
        ours, theirs = socket.socketpair()
        with ExitStack() as on_failure:
            on_failure.callback(ours.close)
            with theirs:
                channel = await self._ask(b"b", (self.mark, *rows), (theirs.fileno(), *descriptors))
            with channel:
                await _wait_readable(channel)
                answer = channel.recv(_ANSWER_BYTES)
            if answer != b"ready":
                raise OSError(answer.decode(errors="replace").removeprefix("failed ") or "it ended at once")
            on_failure.pop_all()
        return Forker(self.mark, ours)

    async def enter_by(self, wrap: Callable[[Sequence[str]], Sequence[str]], rows: Sequence[str]) -> "Forker":
        """Return a Forker in a sandbox that another program makes. Raises OSError as `enter` does.

        `wrap`: turns the command to run there into that program's command.
        """
        ours, theirs = socket.socketpair()
        channel, inside = socket.socketpair()
        with ExitStack() as on_failure, channel:
            on_failure.callback(ours.close)
            with theirs, inside:
                arguments = wrap(make_command("serve_inside", "3", self.mark))
                # The program's error messages (2) come back on the same socket as the answer.
                launch = Launch(arguments, Path("/"), {}, {3: inside.fileno(), 2: inside.fileno()})
                channel.settimeout(0)
                await self.start(launch)
                await _send(channel, (self.mark, *rows), (theirs.fileno(),))
            answer, chunk = b"", b"-"
            while chunk and not answer.endswith(b"ready"):  # a message of that program may come in pieces
                await _wait_readable(channel)
                try:
                    chunk = channel.recv(_ANSWER_BYTES)
                except ConnectionError:  # it ended before it read what was sent
                    chunk = b""
                answer = (answer + chunk)[-_ANSWER_BYTES:]
            if answer != b"ready":
                raise OSError(answer.decode(errors="replace").removeprefix("failed ").strip() or "it ended at once")
            on_failure.pop_all()
        return Forker(self.mark, ours)

    async def end(self) -> None:
        """End everything that was started here and still runs. Nothing can be started any more."""
        await asyncio.gather(*(process.end() for process in self._processes))
        self._end_control()

    async def abandon(self) -> None:
        """End all that runs here by closing the socket: the sandbox's first process then ends everything below it."""
        self._end_control()

    def _end_control(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

    async def _ask(self, kind: bytes, request: Sequence[str], fds: Sequence[int] = ()) -> socket.socket:
        """Send a request; return the socket that its answers come over."""
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        with ExitStack() as on_failure:
            on_failure.callback(ours.close)
            with theirs:
                self._pass(kind, theirs)
            await _send(ours, request, fds)
            on_failure.pop_all()
        return ours

    def _pass(self, kind: bytes, channel: socket.socket) -> None:
        """Pass a socket to the process that serves requests."""
        if self._control is None:
            raise BrokenPipeError(errno.EPIPE, "what starts commands has been ended")
        socket.send_fds(self._control, [kind], [channel.fileno()])


class ProcessLauncher(Forker):
    """Starts programs through a small process, itself started at first use, which ends them if we die."""

    def __init__(self) -> None:
        super().__init__(os.urandom(8).hex())
        self._child: ChildProcess | None = None

    async def close(self) -> None:
        """End everything that was started and still runs, then the launcher."""
        await self.end()
        if self._child is None:
            return
        try:
            async with asyncio.timeout(LAUNCHER_ANSWER.seconds):
                await asyncio.shield(self._child.exited)
        except TimeoutError:
            self._child.kill()

    async def abandon(self) -> None:
        """End all that it started, even when a command has stopped it: then by killing the processes that we see."""
        self._end_control()
        if self._child is None:
            return
        until = asyncio.get_running_loop().time() + LAUNCHER_ANSWER.seconds
        while (living := list_descendants(top_pid=self._child.pid)) and asyncio.get_running_loop().time() < until:
            send_signal(living, KILL)
            await asyncio.sleep(_KILL_ROUND_SECONDS)
        self._child.kill()

    def _pass(self, kind: bytes, channel: socket.socket) -> None:
        """Pass a socket to the launcher; a new one is started when there is none or it was killed."""
        try:
            super()._pass(kind, channel)
        except OSError:
            self._end_control()
        else:
            return
        self._control = self._launch()
        super()._pass(kind, channel)

    def _launch(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            popen = subprocess.Popen(
                make_command("main", str(theirs.fileno()), self.mark),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},  # commands can read the launcher's environment in /proc: it must hold no key
                cwd="/",
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        self._child = ChildProcess(popen)
        return ours


async def finish_uncancelled(ending: Awaitable[object]) -> None:
    """Wait until processes have ended, even when cancelled; then raise the cancellation."""
    task = asyncio.ensure_future(ending)
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError


def make_command(function: str, descriptor: str, mark: str) -> tuple[str, ...]:
    """Return the command that runs a function of the launcher's `main`."""
    return (sys.executable, "-I", "-S", "-c", _PROGRAM.format(function=function), str(_ROOT), descriptor, mark)


async def _send(channel: socket.socket, request: Sequence[str], fds: Sequence[int]) -> None:
    """Send a message as the launcher's `receive` takes it."""
    data = os.fsencode("\0".join(request))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
    channel.sendmsg([len(data).to_bytes(4, "big")], rights)
    await asyncio.get_running_loop().sock_sendall(channel, data)


async def _wait_readable(channel: socket.socket) -> None:
    """Wait for an answer. Raises TimeoutError."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(channel, _settle, ready, None)
    try:
        async with asyncio.timeout(LAUNCHER_ANSWER.seconds):
            await ready
    finally:
        loop.remove_reader(channel)


def _is_hung_up(control: socket.socket) -> bool:
    """Return whether the other end is closed."""
    events = select.poll()
    events.register(control, 0)
    return bool(events.poll(0))
