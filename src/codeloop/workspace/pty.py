"""Terminals: programs on pseudo-terminals that several clients watch and type into; none outlives us."""

import asyncio
import os
import subprocess
from collections.abc import Callable

from codeloop.kit.process import end_tree, hide
from codeloop.schema.ids import new_id
from codeloop.schema.limits import PTY_COUNT, SHELL_TERM
from codeloop.schema.pty import Pty
from codeloop.workspace.child import Child
from codeloop.workspace.leash import MARK, Leash
from codeloop.workspace.master import Master
from codeloop.workspace.programs import Program
from codeloop.workspace.tickets import Tickets
from codeloop.workspace.watching import Output, Watcher

# The first terminal that the leader of a session opens becomes the one that controls it: ctrl-C and job control work.
_SCRIPT = ': <"$0" && exec "$@"'


class Terminal:
    """One program on a terminal of its own, from its start to its end. Raises OSError, ValueError when it can't start.

    `mark`: the variable that marks its processes. `on_exit` hears the exit code when the program ended by itself, and
    everything that it had left running is ended.
    """

    def __init__(self, program: Program, mark: dict[str, str], on_exit: Callable[["Terminal", int], None]) -> None:
        self.id = new_id("pty")
        self.title = f"Terminal {self.id[-4:]}"
        self.program = program
        self._mark = f"{MARK}={mark[MARK]}"
        self._on_exit = on_exit
        self._output = Output()
        self._master = Master(self._output)
        end = self._master.program_end
        try:
            popen = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, self._master.name, program.path, *program.args],
                cwd=program.directory,
                env={**program.environment, **mark},
                stdin=end,
                stdout=end,
                stderr=end,
                start_new_session=True,
            )
        except (OSError, ValueError):
            self._master.close()
            raise
        self._child = Child(popen)
        self._master.listen()
        self._waiting = asyncio.create_task(self._wait(), name=self.id)

    @property
    def info(self) -> Pty:
        """What clients are shown."""
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

    def watch(self, cursor: int | None = None) -> Watcher:
        """Give a new client's view; `cursor` and errors as in Output."""
        return self._output.watch(cursor)

    async def type(self, data: bytes) -> None:
        """Send input to the program; waits while the program has much to read still."""
        await self._master.room()
        self._master.write(data)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size; the program is told."""
        self._master.resize(rows, columns)

    async def end(self) -> None:
        """End the program and everything it started; nobody hears of an exit. Goes on when cancelled meanwhile."""
        self._waiting.cancel()
        self._master.close()
        self._output.end()
        await asyncio.shield(asyncio.ensure_future(self._end_tree()))

    async def _wait(self) -> None:
        code = await asyncio.shield(self._child.exited)
        await self._end_tree()
        self._master.finish()
        self._output.end()
        self._on_exit(self, code if code >= 0 else 128 - code)

    async def _end_tree(self) -> None:
        await end_tree(self._child.pid, self._mark, SHELL_TERM.seconds)
        await asyncio.wait([self._child.exited], timeout=SHELL_TERM.seconds)


class Terminals:
    """The terminals of one project that run, and the tickets for them. `close` ends everything."""

    def __init__(self) -> None:
        self.tickets = Tickets()
        self._leash = Leash()
        self._running: dict[str, Terminal] = {}

    def open(self, program: Program, on_exit: Callable[[Terminal, int], None]) -> Terminal:
        """Start a program. Raises ValueError when too many run, OSError when it can't be started."""
        if len(self._running) >= PTY_COUNT.value:
            raise ValueError(f"{PTY_COUNT.value} terminals are open already; close one first")

        def exited(terminal: Terminal, code: int) -> None:
            self._running.pop(terminal.id, None)
            on_exit(terminal, code)

        self._leash.watch()
        if os.environ.keys() - program.environment.keys() and MARK not in os.environ:  # keys; as in Shells
            hide()
        terminal = Terminal(program, self._leash.environment(), exited)
        self._running[terminal.id] = terminal
        return terminal

    def get(self, pty_id: str) -> Terminal | None:
        """Give a terminal that runs."""
        return self._running.get(pty_id)

    def all(self) -> tuple[Terminal, ...]:
        """Give every terminal, the oldest first."""
        return tuple(self._running.values())

    async def remove(self, pty_id: str) -> bool:
        """End a terminal. Gives False when there is none."""
        terminal = self._running.pop(pty_id, None)
        if terminal is None:
            return False
        await terminal.end()
        return True

    async def close(self) -> None:
        """End every terminal and whatever else one of them left behind."""
        await asyncio.gather(*(self.remove(pty_id) for pty_id in list(self._running)))
        if self._leash.started:
            await end_tree(0, self._leash.mark, SHELL_TERM.seconds)
        self._leash.close()
