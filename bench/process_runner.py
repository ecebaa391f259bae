"""Runs whole processes and measures their wall time, CPU and peak memory,
as the kernel accounts them.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STARTER_FILE = Path(__file__).with_name("process_starter.py")
# macOS counts the peak in bytes, Linux in KiB.
MAXRSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """One run. `cpu` covers the process and the children it waited for;
    `memory` is the largest of these processes.
    """

    wall: float
    """Milliseconds from start to exit."""
    cpu: float
    """Milliseconds, user and system."""
    memory: float
    """Peak resident set, MB."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, its folder and its whole environment."""

    argv: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]


class MeasurementFailed(Exception):
    """A figure could not be measured; for a command that failed,
    the message holds the end of its output.
    """


def run_command(command: Command, timeout_seconds: float = 300.0) -> Sample:
    """Run `command` to its end and return its time and memory.

    Its output goes to a file, so that no pipe slows it down. Raises MeasurementFailed when its exit
    code is not 0, or when it runs longer than `timeout_seconds`;
    its whole process group is then killed.
    """
    report_reader, report_writer = os.pipe()
    with os.fdopen(report_reader) as report, tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(STARTER_FILE), str(report_writer), *command.argv],
                cwd=command.cwd,
                env=dict(command.environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[report_writer],
            )
        finally:
            os.close(report_writer)
        try:
            process.wait(timeout_seconds)
        except (KeyboardInterrupt, subprocess.TimeoutExpired) as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise _make_failure(command, f"after {timeout_seconds:g} s", output.fileno()) from None
        # No report: the starter itself has failed. The wait status of exit code 1 stands
        # in for the missing one.
        wall, cpu, memory, status = map(float, report.read().split() or (0, 0, 0, 1 << 8))
        if code := os.waitstatus_to_exitcode(int(status)):
            raise _make_failure(command, f"with code {code}", output.fileno())
    return Sample(wall * 1000, cpu * 1000, memory * MAXRSS_UNIT_BYTES / 1e6)


def count_imports(command: Command) -> int | None:
    """Run a Python program and return how many modules it imported,
    those of the interpreter's start included.

    None: it is not a Python program. Python prints a line for each import to stderr,
    after a line of headings.
    """
    environ = {**command.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        list(command.argv),
        cwd=command.cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    lines = sum(line.startswith(b"import time:") for line in done.stderr.splitlines())
    return lines - 1 if lines else None


def run_interleaved(commands: Mapping[str, Command], rounds: int) -> dict[str, list[Sample]]:
    """Run all commands in turn, `rounds` times, and return the samples of each, by its name.

    They run in turn, so that a machine that gets slower or faster meanwhile does so for all of them
    alike. One more round, the first, does not count: it fills caches and makes databases.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for round_number in range(rounds + 1):
        for name, command in commands.items():
            sample = run_command(command)
            if round_number:
                samples[name].append(sample)
    return samples


def take_medians(samples: Sequence[Sample]) -> Sample:
    """Return the median of each figure by itself."""
    return Sample(
        statistics.median(sample.wall for sample in samples),
        statistics.median(sample.cpu for sample in samples),
        statistics.median(sample.memory for sample in samples),
    )


def _make_failure(command: Command, end: str, output: int) -> MeasurementFailed:
    return MeasurementFailed(
        f"{command.argv[0]} ended {end}; it printed last:\n{_read_tail(output)}"
    )


def _read_tail(descriptor: int, size: int = 2000) -> str:
    length = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, max(0, length - size)).decode(errors="replace")
