"""Whole processes, measured from outside: wall time, CPU and peak memory as the kernel accounts them."""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# macOS counts the peak in bytes, Linux in KiB.
MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. `cpu` covers the process and the children it waited for; `memory` is the largest of these processes."""

    wall: float
    """Milliseconds from start to exit."""
    cpu: float
    """Milliseconds, user and system."""
    memory: float
    """Peak resident set, MB."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, where, and with which environment (the whole of it)."""

    argv: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]


class Failed(Exception):
    """A measured command did not end well; the message holds the end of what it printed."""


def run(command: Command, deadline: float = 300.0) -> Sample:
    """Run `command` to its end and return what it took.

    Its output goes to a file, so that no pipe slows it down. Raises Failed when it exits with anything but 0 or is not
    done after `deadline` seconds; its whole process group is then killed.
    """
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            list(command.argv),
            cwd=command.cwd,
            env=dict(command.environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        timer = threading.Timer(deadline, os.killpg, (process.pid, signal.SIGKILL))
        timer.daemon = True
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
        wall = (time.perf_counter() - started) * 1000
        # wait4 has reaped it; Popen must not try again.
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            end = (
                f"after {deadline:g} s" if process.returncode == -signal.SIGKILL else f"with code {process.returncode}"
            )
            raise Failed(f"{command.argv[0]} ended {end}; it printed last:\n{_tail(output.fileno())}")
    return Sample(wall, (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss * MAXRSS_BYTES / 1e6)


def imported(command: Command) -> int | None:
    """Run a Python program and return how many modules it imported, those of the interpreter's start included.

    None: it is no Python program.
    """
    environ = {**command.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        list(command.argv), cwd=command.cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    lines = sum(line.startswith(b"import time:") for line in done.stderr.splitlines())
    return lines - 1 if lines else None


def interleaved(commands: Mapping[str, Command], rounds: int) -> dict[str, list[Sample]]:
    """Run all commands in turn, `rounds` times, after one round that does not count.

    In turn, so that a machine that gets slower or faster meanwhile does so for all of them alike.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for round_number in range(rounds + 1):
        for name, command in commands.items():
            sample = run(command)
            if round_number:
                samples[name].append(sample)
    return samples


def median(samples: Sequence[Sample]) -> Sample:
    """Return the median of each figure by itself."""
    return Sample(
        statistics.median(sample.wall for sample in samples),
        statistics.median(sample.cpu for sample in samples),
        statistics.median(sample.memory for sample in samples),
    )


def _tail(descriptor: int, size: int = 2000) -> str:
    length = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, max(0, length - size)).decode(errors="replace")
