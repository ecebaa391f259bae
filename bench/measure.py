"""Whole processes, measured from outside: wall time, CPU and peak memory as the kernel accounts them."""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STARTER = Path(__file__).with_name("starter.py")
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
    report, writer = os.pipe()
    with os.fdopen(report) as lines, tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(STARTER), str(writer), *command.argv],
                cwd=command.cwd,
                env=dict(command.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[writer],
            )
        finally:
            os.close(writer)
        try:
            process.wait(deadline)
        except (KeyboardInterrupt, subprocess.TimeoutExpired) as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise _describe(command, f"after {deadline:g} s", output.fileno()) from None
        wall, cpu, memory, status = map(float, lines.read().split() or (0, 0, 0, 1 << 8))
        if code := os.waitstatus_to_exitcode(int(status)):
            raise _describe(command, f"with code {code}", output.fileno())
    return Sample(wall * 1000, cpu * 1000, memory * MAXRSS_BYTES / 1e6)


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


def read_cpu(pid: int) -> float:
    """Return the processor time that a process has used, user and system, seconds; 0.0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def median(samples: Sequence[Sample]) -> Sample:
    """Return the median of each figure by itself."""
    return Sample(
        statistics.median(sample.wall for sample in samples),
        statistics.median(sample.cpu for sample in samples),
        statistics.median(sample.memory for sample in samples),
    )


def _describe(command: Command, end: str, output: int) -> Failed:
    return Failed(f"{command.argv[0]} ended {end}; it printed last:\n{_tail(output)}")


def _tail(descriptor: int, size: int = 2000) -> str:
    length = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, max(0, length - size)).decode(errors="replace")
