"""Measures the terminal UI in a pseudo-terminal: first paint, long sessions, keys during a stream,
CPU at rest.
"""

import os
import pty
import select
import signal
import sqlite3
import statistics
import struct
import termios
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from fcntl import ioctl
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.bench_run import BenchRun
from bench.long_session import MESSAGE_COUNT, TURNS_AFTER_COMPACTION, fill_session
from bench.process_runner import Command, MeasurementFailed, run_command
from bench.process_stats import read_cpu
from bench.scenario_server import Scenario, ScenarioServer
from bench.subjects import CODELOOP, Installation

ROWS, COLUMNS = 45, 140
EMPTY_PROMPT_TEXT = "or describe a task"
"""The text in the prompt while it is empty."""
PACED_STREAM = Scenario("paced", 20_000)
"""About 2,000 deltas a second for ten seconds."""
READ_MESSAGES = 1_000
"""Messages of the session that is read from its end to its beginning."""
FIRST_MESSAGE_KEY = "\x07"
"""Ctrl+G, which goes to the first message."""
TYPED_KEYS = "äöüßéèêàâîôûñçåæøœ"
"""Typed one by one; none of them is on the screen otherwise,
so each is seen as soon as it is drawn.
"""
WAIT_SECONDS = 30.0
STARTUP_SECONDS = 13.0
"""By then all work of the start is over: the newer catalog,
and the frequent checks for other processes.
"""
IDLE_SECONDS = 5.0


class TerminalProgram:
    """A program that runs within a `with` block, in a terminal of its own."""

    def __init__(self, command: Command) -> None:
        self.output = ""
        """What the program has written since the last `clear_output`."""
        self._command = command
        self._pid = self._terminal = -1

    def __enter__(self) -> Self:
        """Start the program."""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(self._command.cwd)
            os.execve(self._command.argv[0], list(self._command.argv), dict(self._command.environ))
        ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the program."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until the program has written a text.
        Raises MeasurementFailed when it does not come.
        """
        self.read_until(lambda: text in self.output, WAIT_SECONDS)
        if text not in self.output:
            raise MeasurementFailed(
                f"{self._command.argv} never showed {text!r}: {self.output[-500:]!r}"
            )

    def read_until(self, is_done: Callable[[], bool], seconds: float) -> None:
        """Read until a condition is true, at most so many seconds.

        A terminal that nobody reads blocks the program, so this is also the way to wait.
        """
        until = time.perf_counter() + seconds
        while not is_done() and (left := until - time.perf_counter()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                self.output += os.read(self._terminal, 1 << 16).decode(errors="replace")

    def wait(self, seconds: float) -> None:
        """Read for so many seconds."""
        self.read_until(lambda: False, seconds)

    def clear_output(self) -> None:
        """Forget the output so far."""
        self.output = ""

    def read_cpu(self) -> float:
        """Return the CPU that the program has used, seconds."""
        return read_cpu(self._pid)

    def measure_idle_cpu(self, seconds: float) -> float:
        """Do nothing for so many seconds; return the CPU that the program uses in one of them,
        ms.
        """
        before = self._read_thread_time()
        self.wait(seconds)
        return (self._read_thread_time() - before) / seconds

    def _read_thread_time(self) -> float:
        """Return the time for which its threads have run, ms;
        `read_cpu` counts in ticks of 10 ms.
        """
        threads = Path(f"/proc/{self._pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6

    def read_peak_memory(self) -> float:
        """Return the peak of its resident memory, MB."""
        line = next(
            line
            for line in Path(f"/proc/{self._pid}/status").read_text().splitlines()
            if "VmHWM" in line
        )
        return int(line.split()[1]) / 1024


def measure_terminal_ui(bench: BenchRun) -> None:
    """Measure codeloop's terminal UI. Nothing is measured on a system without /proc."""
    if Path("/proc/self/stat").exists():
        _measure_first_paint(bench, bench.codeloop)
        _measure_keys(bench, bench.codeloop)
        _measure_stream(bench, bench.codeloop)


def _measure_first_paint(bench: BenchRun, installation: Installation) -> None:
    with ScenarioServer(Scenario("answer")) as server:
        run_command(installation.fill((CODELOOP, "run", "--auto", "{prompt}"), server.url))
        command = _make_command(installation, server.url)
        times, memories = list[float](), list[float]()
        for _ in range(bench.rounds):
            with _start_painted(command) as (terminal, milliseconds):
                times.append(milliseconds)
                memories.append(terminal.read_peak_memory())
        with _start_painted(command) as (terminal, _):
            terminal.wait(STARTUP_SECONDS)
            bench.put_own("tui-idle", terminal.measure_idle_cpu(IDLE_SECONDS))
        _measure_read_session(bench, installation, server.url)
        bench.put_own("tui-paint", statistics.median(times))
        bench.put_own("tui-memory", statistics.median(memories))
        _measure_long_session(bench, installation, server.url, statistics.median(times))


def _measure_read_session(bench: BenchRun, installation: Installation, url: str) -> None:
    """Measure the memory after a whole session was read: each message is drawn on
    the way to its beginning.
    """
    session_id = _make_filled_session(installation, url, READ_MESSAGES)
    with TerminalProgram(_make_command(installation, url, "--session", session_id)) as terminal:
        terminal.wait_for(f"prompt {READ_MESSAGES // 2 + TURNS_AFTER_COMPACTION - 1}")
        terminal.type(FIRST_MESSAGE_KEY)
        terminal.wait_for("prompt 0")
        terminal.wait(1)
        bench.put_own("tui-thousand-memory", terminal.read_peak_memory())


def _make_filled_session(installation: Installation, url: str, messages: int) -> str:
    """Make a session by a run, fill it with messages, and return its id."""
    database = next((installation.home / "codeloop").rglob("*.db"))
    known = _list_sessions(database)
    run_command(installation.fill((CODELOOP, "run", "--auto", "{prompt}"), url))
    (session_id,) = _list_sessions(database) - known
    fill_session(database, session_id, messages)
    return session_id


def _list_sessions(database: Path) -> set[str]:
    with sqlite3.connect(database) as db:
        return {str(row[0]) for row in db.execute("SELECT id FROM session")}


def _measure_long_session(
    bench: BenchRun, installation: Installation, url: str, first_paint: float
) -> None:
    """Measure opening a long session, over `first_paint`: the time of the UI without a session,
    ms.
    """
    session_id = _make_filled_session(installation, url, MESSAGE_COUNT)
    times: list[float] = []
    for _ in range(bench.rounds):
        began = time.perf_counter()
        with TerminalProgram(_make_command(installation, url, "--session", session_id)) as terminal:
            terminal.wait_for(f"prompt {MESSAGE_COUNT // 2 + TURNS_AFTER_COMPACTION - 1}")
            times.append((time.perf_counter() - began) * 1000)
    bench.put_own("tui-long", statistics.median(times) - first_paint)


def _measure_keys(bench: BenchRun, installation: Installation) -> None:
    with (
        ScenarioServer(PACED_STREAM) as server,
        _start_painted(_make_command(installation, server.url)) as (terminal, _),
    ):
        terminal.type("hi\r")
        terminal.wait_for("word word")
        times: list[float] = []
        for key in TYPED_KEYS * 4:
            terminal.wait(0.05)
            terminal.clear_output()
            began = time.perf_counter()
            terminal.type(key)
            terminal.wait_for(key)
            times.append((time.perf_counter() - began) * 1000)
        bench.put_own("tui-key", statistics.median(times))
        bench.put_own("tui-key-slow", sorted(times)[len(times) * 99 // 100])


def _measure_stream(bench: BenchRun, installation: Installation) -> None:
    with ScenarioServer(PACED_STREAM) as server:
        plain = run_command(
            installation.fill((CODELOOP, "run", "--auto", "{prompt}"), server.url)
        ).cpu
        with _start_painted(_make_command(installation, server.url)) as (terminal, _):
            before = terminal.read_cpu()
            terminal.type("hi\r")
            # The line of figures at the end of an answer.
            terminal.read_until(lambda: " in, " in terminal.output, 60)
            bench.put_own("tui-stream", (terminal.read_cpu() - before) * 1000 / plain)


def _make_command(installation: Installation, url: str, *more: str) -> Command:
    command = installation.fill((CODELOOP, *more), url)
    # NO_COLOR would save the work that is to be measured.
    environ = {key: value for key, value in command.environ.items() if key != "NO_COLOR"}
    return replace(command, environ={**environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"})


@contextmanager
def _start_painted(command: Command) -> Generator[tuple[TerminalProgram, float]]:
    """Run a program; yield it once it has drawn its first screen and a typed key,
    and the time until then, ms.
    """
    began = time.perf_counter()
    with TerminalProgram(command) as terminal:
        terminal.wait_for(EMPTY_PROMPT_TEXT)
        terminal.type("¬")
        terminal.wait_for("¬")
        milliseconds = (time.perf_counter() - began) * 1000
        terminal.type("\x7f")
        yield terminal, milliseconds
