"""The terminal UI in a pseudo-terminal: first paint, a long session, keys while text streams, what it costs at rest."""

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

from bench.figures import Bench
from bench.large import MESSAGES, TAIL, fill
from bench.measure import Command, Failed, read_cpu, run
from bench.server import Scenario, Server
from bench.subject import CODELOOP, Place

ROWS, COLUMNS = 45, 140
READY = "or describe a task"
"""The prompt's words while it is empty."""
PACED = Scenario("paced", 20_000)
"""About 2,000 deltas a second for ten seconds."""
THOUSAND = 1_000
"""Messages of a session that is read from its end to its beginning."""
TO_FIRST = "\x07"
KEYS = "äöüßéèêàâîôûñçåæøœ"
"""Typed one by one; none of them is on the screen otherwise."""
WAIT = 30.0
SETTLED = 13.0
"""Seconds after which nothing of the start goes on: a newer catalog, and looking often for other processes."""
IDLE = 5.0


class Screen:
    """A running program with a terminal of its own."""

    def __init__(self, command: Command) -> None:
        self.shown = ""
        """What it has written and `forget` has not dropped."""
        self._command = command
        self._pid = self._terminal = -1

    def __enter__(self) -> Self:
        """Start it."""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(self._command.cwd)
            os.execve(self._command.argv[0], list(self._command.argv), dict(self._command.environ))
        ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until a text was written. Raises Failed when it does not come."""
        self.read(lambda: text in self.shown, WAIT)
        if text not in self.shown:
            raise Failed(f"{self._command.argv} never showed {text!r}: {self.shown[-500:]!r}")

    def read(self, enough: Callable[[], bool], seconds: float) -> None:
        """Read for so long, or until it is enough."""
        until = time.perf_counter() + seconds
        while not enough() and (left := until - time.perf_counter()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                self.shown += os.read(self._terminal, 1 << 16).decode(errors="replace")

    def forget(self) -> None:
        """Drop what was shown."""
        self.shown = ""

    def cpu(self) -> float:
        """Return the seconds of CPU it has used."""
        return read_cpu(self._pid)

    def rest(self, seconds: float) -> float:
        """Return the milliseconds of CPU that its threads use in a second, while nothing happens for so many."""
        before = self._scheduled()
        self.read(lambda: False, seconds)
        return (self._scheduled() - before) / seconds

    def _scheduled(self) -> float:
        """Return the milliseconds that its threads have run: finer than the ticks that `cpu` counts."""
        threads = Path(f"/proc/{self._pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6

    def memory(self) -> float:
        """Return its peak resident set in MB."""
        line = next(line for line in Path(f"/proc/{self._pid}/status").read_text().splitlines() if "VmHWM" in line)
        return int(line.split()[1]) / 1024


def screen(bench: Bench) -> None:
    """Measure codeloop's terminal UI. On a system without /proc, memory and CPU can't be had."""
    for place in bench.places:
        if place.subject.name == "codeloop" and Path("/proc/self/stat").exists():
            _first_paint(bench, place)
            _keys(bench, place)
            _streamed(bench, place)


def _first_paint(bench: Bench, place: Place) -> None:
    with Server(Scenario("answer")) as server:
        run(place.fill((CODELOOP, "run", "--auto", "{prompt}"), server.url))
        command = _interactive(place, server.url)
        times, memories = list[float](), list[float]()
        for _ in range(bench.rounds):
            with _painted(command) as (it, taken):
                times.append(taken)
                memories.append(it.memory())
        with _painted(command) as (it, _):
            it.read(lambda: False, SETTLED)
            bench.put(place, "tui-idle", it.rest(IDLE))
        _thousand(bench, place, server.url)
        bench.put(place, "tui-paint", statistics.median(times))
        bench.put(place, "tui-memory", statistics.median(memories))
        database = next((place.home / "codeloop").rglob("*.db"))
        _long(bench, place, database, server.url, statistics.median(times))


def _thousand(bench: Bench, place: Place, url: str) -> None:
    """Measure what it takes to have read all of a session: each message is drawn on the way to its beginning."""
    database = next((place.home / "codeloop").rglob("*.db"))
    before = _sessions(database)
    run(place.fill((CODELOOP, "run", "--auto", "{prompt}"), url))
    (session_id,) = _sessions(database) - before
    fill(database, session_id, THOUSAND)
    with Screen(_interactive(place, url, "--session", session_id)) as it:
        it.wait_for(f"prompt {THOUSAND // 2 + TAIL - 1}")
        it.type(TO_FIRST)
        it.wait_for("prompt 0")
        it.read(lambda: False, 1)
        bench.put(place, "tui-thousand-memory", it.memory())


def _sessions(database: Path) -> set[str]:
    with sqlite3.connect(database) as db:
        return {str(row[0]) for row in db.execute("SELECT id FROM session")}


def _long(bench: Bench, place: Place, database: Path, url: str, empty: float) -> None:
    session_id = min(_sessions(database))
    fill(database, session_id, MESSAGES)
    times: list[float] = []
    for _ in range(bench.rounds):
        began = time.perf_counter()
        with Screen(_interactive(place, url, "--session", session_id)) as it:
            it.wait_for(f"prompt {MESSAGES // 2 + TAIL - 1}")
            times.append((time.perf_counter() - began) * 1000)
    bench.put(place, "tui-long", statistics.median(times) - empty)


def _keys(bench: Bench, place: Place) -> None:
    with Server(PACED) as server, _painted(_interactive(place, server.url)) as (it, _):
        it.type("hi\r")
        it.wait_for("word word")
        taken: list[float] = []
        for key in KEYS * 4:
            it.read(lambda: False, 0.05)
            it.forget()
            began = time.perf_counter()
            it.type(key)
            it.wait_for(key)
            taken.append((time.perf_counter() - began) * 1000)
        bench.put(place, "tui-key", statistics.median(taken))
        bench.put(place, "tui-key-slow", sorted(taken)[len(taken) * 99 // 100])


def _streamed(bench: Bench, place: Place) -> None:
    with Server(PACED) as server:
        plain = run(place.fill((CODELOOP, "run", "--auto", "{prompt}"), server.url)).cpu
        with _painted(_interactive(place, server.url)) as (it, _):
            before = it.cpu()
            it.type("hi\r")
            it.read(lambda: " in, " in it.shown, 60)
            bench.put(place, "tui-stream", (it.cpu() - before) * 1000 / plain)


def _interactive(place: Place, url: str, *more: str) -> Command:
    command = place.fill((CODELOOP, *more), url)
    environ = {key: value for key, value in command.environ.items() if key != "NO_COLOR"}
    return replace(command, environ={**environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"})


@contextmanager
def _painted(command: Command) -> Generator[tuple[Screen, float]]:
    """Yield the program once its first screen is complete and a key was taken, and how many ms that took."""
    began = time.perf_counter()
    with Screen(command) as it:
        it.wait_for(READY)
        it.type("¬")
        it.wait_for("¬")
        taken = (time.perf_counter() - began) * 1000
        it.type("\x7f")
        yield it, taken
