"""Counts the instructions of a program by perf or valgrind: a figure that other work on
the machine does not change.

Counted is what the program itself executes in user space, without the programs that it starts.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.process_runner import Command, MeasurementFailed
from codeloop.kit.remove_tree import temporary_folder

_PERF = ("perf", "stat", "--no-inherit", "--field-separator=,", "--event=instructions:u")
_VALGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
_PERF_COUNT = r"(?m)^(\d+),[^,]*,instructions:u"
_VALGRIND_COUNT = r"Collected : (\d+)"
_TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Counter:
    """A program that counts. `options`: returns its options for the file that
    it writes its report to.
    """

    name: str
    command: Sequence[str]
    options: Callable[[str], Sequence[str]]
    pattern: str
    """Matches the count in the report."""

    def count(self, command: Command) -> int:
        """Return the instructions of a command. Raises MeasurementFailed."""
        with temporary_folder("codeloop-bench-count-") as folder:
            report = Path(folder, "report")
            # A script has to be named with its interpreter: valgrind runs binaries.
            argv = [*self.command, *self.options(str(report)), *_name_interpreter(command.argv)]
            try:
                done = subprocess.run(
                    argv,
                    cwd=command.cwd,
                    # Each time the same order in sets, and the same collisions in dictionaries.
                    env={**command.environ, "PYTHONHASHSEED": "0"},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=_TIMEOUT_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise MeasurementFailed(
                    f"{command.argv[0]} was not counted within {_TIMEOUT_SECONDS:g} s"
                ) from None
            match = (
                re.search(self.pattern, report.read_text(errors="replace"))
                if report.exists()
                else None
            )
        if done.returncode or match is None:
            raise MeasurementFailed(
                f"{self.name} counted nothing: {done.stderr[-500:].decode(errors='replace')}"
            )
        return int(match[1])


_COUNTERS = (
    Counter("perf", _PERF, lambda report: ("--output", report, "--"), _PERF_COUNT),
    Counter("valgrind", _VALGRIND, lambda report: (f"--log-file={report}",), _VALGRIND_COUNT),
)


def find_counter(folder: Path, path: str | None = None) -> Counter | None:
    """Return the first counter that works here; None: there is none.

    perf is often installed on machines that let nobody count, so each is tried in `folder`. `path`:
    where they are looked for, as in PATH; None: on the PATH of this process.
    """
    for counter in _COUNTERS:
        if (program := shutil.which(counter.command[0], path=path)) is None:
            continue
        found = Counter(
            counter.name, (program, *counter.command[1:]), counter.options, counter.pattern
        )
        try:
            found.count(Command([sys.executable, "-S", "-c", "pass"], folder, {}))
        except (MeasurementFailed, OSError):
            continue
        return found
    return None


def _name_interpreter(argv: Sequence[str]) -> list[str]:
    program = Path(argv[0])
    is_script = program.is_file() and program.read_bytes()[:2] == b"#!"
    return [sys.executable, *argv] if is_script else list(argv)
