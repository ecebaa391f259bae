"""Terminals: programs on pseudo-terminals that several clients watch and type into; none outlives us."""

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack

from codeloop.schema.api.pty import Pty
from codeloop.schema.bounds.server import PTY_COUNT, PTY_TICKET, PTY_TICKETS
from codeloop.schema.ids import new_id
from codeloop.workspace.sandbox.process_launcher import Launch, LaunchedProcess, ProcessLauncher, protect_own_memory
from codeloop.workspace.terminal.pty_io import PtyMaster
from codeloop.workspace.terminal.shell_choice import Program
from codeloop.workspace.terminal.viewers import TerminalOutput, Viewer

# The first terminal that the leader of a session opens becomes the one that controls it: ctrl-C and job control work.
_SCRIPT = ': <"$0" && exec "$@"'


class Terminal:
    """One program on a terminal of its own, from its start to its end.

    `on_exit` gets the exit code when the program ended by itself and its remaining processes were ended.
    """

    def __init__(
        self, program: Program, child: LaunchedProcess, master: PtyMaster, on_exit: Callable[["Terminal", int], None]
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
        """Return the information for clients."""
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
        """Return a new client's view; `cursor` and errors as in TerminalOutput."""
        return self._output.watch(cursor)

    async def type(self, data: bytes) -> None:
        """Send input to the program; waits while the program has much to read still."""
        await self._master.room()
        self._master.write(data)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size; the program gets SIGWINCH."""
        self._master.resize(rows, columns)

    async def end(self) -> None:
        """End the program and everything it started; no exit is reported. Continues when cancelled."""
        self._waiting.cancel()
        self._master.close()
        self._output.end()
        await asyncio.shield(asyncio.ensure_future(self._child.end()))

    async def _wait(self) -> None:
        code = await asyncio.shield(self._child.exited)
        await self._child.end()
        self._master.finish()
        self._output.end()
        self._on_exit(self, code if code >= 0 else 128 - code)


class Tickets:
    """The unused connection tickets of one project. `lifetime`: seconds."""

    def __init__(self, lifetime: float = PTY_TICKET.seconds) -> None:
        self._lifetime = lifetime
        self._open: dict[str, tuple[str, float]] = {}

    def give(self, pty_id: str) -> str:
        """Return a new ticket for a terminal."""
        import uuid  # 2.5 ms

        if len(self._open) >= PTY_TICKETS.value:
            del self._open[next(iter(self._open))]
        ticket = str(uuid.uuid4())
        self._open[ticket] = (pty_id, time.monotonic() + self._lifetime)
        return ticket

    def take(self, ticket: str, pty_id: str) -> bool:
        """Use a ticket up, and return whether it was one for this terminal that had not expired."""
        terminal_id, until = self._open.pop(ticket, ("", 0.0))
        return terminal_id == pty_id and time.monotonic() < until


class Terminals:
    """The terminals of one project that run, and the tickets for them. `close` ends everything."""

    def __init__(self) -> None:
        self.tickets = Tickets()
        self._launcher = ProcessLauncher()
        self._running: dict[str, Terminal] = {}
        self._opening = 0

    async def open(self, program: Program, on_exit: Callable[[Terminal, int], None]) -> Terminal:
        """Start a program. Raises ValueError when too many run, OSError when it can't be started."""
        if len(self._running) + self._opening >= PTY_COUNT.value:
            raise ValueError(f"{PTY_COUNT.value} terminals are already open; close one first")

        def finish(terminal: Terminal, code: int) -> None:
            self._running.pop(terminal.id, None)
            on_exit(terminal, code)

        protect_own_memory(program.environment)
        master = PtyMaster(TerminalOutput())
        end = master.program_end
        arguments = ("/bin/sh", "-c", _SCRIPT, master.name, program.path, *program.args)
        launch = Launch(arguments, program.directory, program.environment, {0: end, 1: end, 2: end})
        self._opening += 1
        with ExitStack() as on_failure:
            on_failure.callback(master.close)
            try:
                child = await self._launcher.start(launch)
            finally:
                self._opening -= 1
            on_failure.pop_all()
        terminal = Terminal(program, child, master, finish)
        self._running[terminal.id] = terminal
        return terminal

    @property
    def is_busy(self) -> bool:
        """Return whether a terminal runs."""
        return bool(self._running)

    def get(self, pty_id: str) -> Terminal | None:
        """Return a running terminal, or None."""
        return self._running.get(pty_id)

    def all(self) -> tuple[Terminal, ...]:
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
        """End every terminal and whatever else one of them left behind."""
        await asyncio.gather(*(self.remove(pty_id) for pty_id in list(self._running)))
        await self._launcher.close()
