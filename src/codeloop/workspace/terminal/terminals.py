"""Terminals: programs on pseudo-terminals, which several clients watch and type into.
None outlives codeloop.

`server/pty_socket.py` connects clients to them by a one-time ticket.
"""

import asyncio
import fcntl
import os
import struct
import termios
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from codeloop.kit.child_process import Launch
from codeloop.schema.bounds.server import (
    PTY_BURST,
    PTY_COUNT,
    PTY_INPUT,
    PTY_KEPT,
    PTY_PAUSE,
    PTY_TICKET,
    PTY_TICKETS,
)
from codeloop.schema.ids import new_id
from codeloop.schema.resources import Pty
from codeloop.workspace.sandbox.launched_process import LaunchedProcess
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher, protect_own_memory
from codeloop.workspace.terminal.shell_choice import TerminalProgram
from codeloop.workspace.terminal.terminal_output import TerminalOutput, Viewer

_CHUNK_BYTES = 65536
# Rows and columns, until a client reports its size.
_INITIAL_SIZE = (24, 80)


class PtyMaster:
    """A new pseudo-terminal. Call `listen` once the program has its end of it."""

    def __init__(self, output: TerminalOutput) -> None:
        """Raise OSError when the system has no more terminals."""
        self.output = output
        self._loop = asyncio.get_running_loop()
        self._fd, self.program_end = os.openpty()
        # The program's end stays open here, too. Otherwise reading would fail as soon as all
        # processes have closed it, even if a later one opens it again.
        try:
            self.name = os.ttyname(self.program_end)
        except OSError:
            os.close(self._fd)
            os.close(self.program_end)
            raise
        os.set_blocking(self._fd, False)
        self._input = bytearray()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._period_start = 0.0
        self._period_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self.resize(*_INITIAL_SIZE)

    def listen(self) -> None:
        """Begin to read."""
        self._loop.add_reader(self._fd, self._on_readable)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size. The program gets SIGWINCH."""
        if self._fd >= 0:
            fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, data: bytes) -> None:
        """Send input. It is queued until the program reads it."""
        if self._fd < 0 or not data:
            return
        if not self._input:
            self._loop.add_writer(self._fd, self._on_writable)
        self._input += data
        self._on_writable()

    async def wait_for_room(self) -> None:
        """Wait until the queue for the program is short enough."""
        await self._has_room.wait()

    def finish(self) -> None:
        """Read the remaining output, and close."""
        remaining = PTY_KEPT.value
        while self._fd >= 0 and remaining > 0 and (chunk := self._read()):
            remaining -= len(chunk)
        self.close()

    def close(self) -> None:
        """Close the terminal: the kernel hangs up its remaining processes."""
        if self._fd < 0:
            return
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        if self._timer is not None:
            self._timer.cancel()
        os.close(self._fd)
        os.close(self.program_end)
        self._fd = -1
        self._input.clear()
        self._has_room.set()

    def _read(self) -> bytes:
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except OSError:
            # There is nothing to read, or the terminal is hung up,
            # which the end of the program shows as well.
            return b""
        if chunk:
            self.output.write(chunk)
        return chunk

    def _on_readable(self) -> None:
        # A program that prints without end must not keep the event loop busy, so each period has a
        # limited number of bytes. It also waits for clients that are slow to read.
        now = self._loop.time()
        if now - self._period_start > PTY_PAUSE.seconds:
            self._period_start, self._period_bytes = now, 0
        self._period_bytes += len(self._read())
        if self._period_bytes >= PTY_BURST.value or self.output.should_wait():
            self._loop.remove_reader(self._fd)
            self._timer = self._loop.call_later(PTY_PAUSE.seconds, self._resume)

    def _resume(self) -> None:
        if self.output.should_wait():
            self._timer = self._loop.call_later(PTY_PAUSE.seconds, self._resume)
        else:
            self.listen()

    def _on_writable(self) -> None:
        with suppress(BlockingIOError):
            count = os.write(self._fd, self._input[:_CHUNK_BYTES])
            del self._input[:count]
        if not self._input:
            self._loop.remove_writer(self._fd)
        if len(self._input) < PTY_INPUT.value:
            self._has_room.set()
        else:
            self._has_room.clear()


class ConnectionTickets:
    """The unused tickets of one project, each for one connection to a terminal.
    `lifetime`: in seconds.

    Browsers can't send a header with a WebSocket, so the ticket in its URL takes
    the place of the credential.
    """

    def __init__(self, lifetime: float = PTY_TICKET.seconds) -> None:
        self._lifetime = lifetime
        # Ticket -> the terminal's id, and when the ticket expires.
        self._tickets: dict[str, tuple[str, float]] = {}

    def issue(self, pty_id: str) -> str:
        """Return a new ticket for a terminal. The oldest is dropped when there are too many."""
        # Imported here: it takes 2.5 ms.
        import uuid

        if len(self._tickets) >= PTY_TICKETS.value:
            del self._tickets[next(iter(self._tickets))]
        ticket = str(uuid.uuid4())
        self._tickets[ticket] = (pty_id, time.monotonic() + self._lifetime)
        return ticket

    def redeem(self, ticket: str, pty_id: str) -> bool:
        """Use up a ticket. Returns whether it was for this terminal and had not expired."""
        issued_for, deadline = self._tickets.pop(ticket, ("", 0.0))
        return issued_for == pty_id and time.monotonic() < deadline


# The first terminal that the leader of a session opens becomes the one that controls it:
# ctrl-C and job control work.
_START_SCRIPT = ': <"$0" && exec "$@"'


class Terminal:
    """One program on its own terminal, from its start to its end.

    `on_exit` gets it and the exit code, after the program ended by itself and its
    remaining processes were ended.
    """

    def __init__(
        self,
        program: TerminalProgram,
        child: LaunchedProcess,
        master: PtyMaster,
        on_exit: Callable[["Terminal", int], None],
    ) -> None:
        self.id = new_id("pty")
        self.title = f"Terminal {self.id[-4:]}"
        self.program = program
        self._on_exit = on_exit
        self._output = master.output
        self._master = master
        self._child = child
        self._master.listen()
        self._waiting = asyncio.create_task(self._wait(), name=self.id)

    @property
    def info(self) -> Pty:
        """The description of the terminal for clients."""
        program = self.program
        return Pty(
            id=self.id,
            title=self.title,
            command=program.command,
            args=list(program.args),
            cwd=str(program.directory),
            status="running",
            pid=self._child.pid,
        )

    def watch(self, cursor: int | None = None) -> Viewer:
        """Return a viewer for a new client. `cursor` and errors as in `TerminalOutput.watch`."""
        return self._output.watch(cursor)

    async def send_input(self, data: bytes) -> None:
        """Send input to the program. Waits while much earlier input is unread."""
        await self._master.wait_for_room()
        self._master.write(data)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size; the program gets SIGWINCH."""
        self._master.resize(rows, columns)

    async def end(self) -> None:
        """End the program and all its processes. No exit is reported.
        Continues in the background when cancelled.
        """
        self._waiting.cancel()
        self._master.close()
        self._output.end()
        await asyncio.shield(asyncio.ensure_future(self._child.end()))

    async def _wait(self) -> None:
        code = await asyncio.shield(self._child.exited)
        await self._child.end()
        self._master.finish()
        self._output.end()
        # As in shells, a program that was ended by a signal has the exit code 128 plus the signal.
        self._on_exit(self, code if code >= 0 else 128 - code)


class Terminals:
    """The running terminals of one project, and the tickets for them. `close` ends everything."""

    def __init__(self) -> None:
        self.tickets = ConnectionTickets()
        self._launcher = ProcessLauncher()
        self._running: dict[str, Terminal] = {}
        self._opening_count = 0

    async def open(
        self, program: TerminalProgram, on_exit: Callable[[Terminal, int], None]
    ) -> Terminal:
        """Start a program. Raises ValueError when too many run,
        OSError when it can't be started.
        """
        if len(self._running) + self._opening_count >= PTY_COUNT.value:
            raise ValueError(f"{PTY_COUNT.value} terminals are already open; close one first")

        def finish(terminal: Terminal, code: int) -> None:
            self._running.pop(terminal.id, None)
            on_exit(terminal, code)

        protect_own_memory(program.environment)
        master = PtyMaster(TerminalOutput())
        launch = Launch(
            arguments=("/bin/sh", "-c", _START_SCRIPT, master.name, program.path, *program.args),
            directory=program.directory,
            environment=program.environment,
            descriptors=dict.fromkeys((0, 1, 2), master.program_end),
        )
        self._opening_count += 1
        with ExitStack() as on_failure:
            on_failure.callback(master.close)
            try:
                child = await self._launcher.start(launch)
            finally:
                self._opening_count -= 1
            on_failure.pop_all()
        terminal = Terminal(program, child, master, finish)
        self._running[terminal.id] = terminal
        return terminal

    @property
    def is_busy(self) -> bool:
        """Whether a terminal runs."""
        return bool(self._running)

    def get(self, pty_id: str) -> Terminal | None:
        """Return a running terminal, or None."""
        return self._running.get(pty_id)

    def list_terminals(self) -> tuple[Terminal, ...]:
        """Return every terminal, the oldest first."""
        return tuple(self._running.values())

    async def remove(self, pty_id: str) -> bool:
        """End a terminal. Returns False when there is no such terminal."""
        terminal = self._running.pop(pty_id, None)
        if terminal is None:
            return False
        await terminal.end()
        return True

    async def close(self) -> None:
        """End every terminal, and all other processes that their programs started."""
        await asyncio.gather(*(self.remove(pty_id) for pty_id in list(self._running)))
        await self._launcher.close()
