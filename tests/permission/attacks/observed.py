"""What bash really executes and changes when it is given a line: programs that
record how they were called.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

PROGRAMS = ("git", "ls", "cat", "rm", "evil", "head", "tee", "sleep", "find", "sort", "grep")
SHIM = """#!/bin/sh
printf '%s\\0' run "$PATH" "$HOME" "${{GIT_DIR-}}${{GIT_PAGER-}}${{BASH_ENV-}}${{ENV-}}" \\
  "$#" "${{0##*/}}" "$@" >> {log}
"""
DRIVER = """
n=0
while IFS= read -r -d '' line; do
  printf '%s\\0' line "$n" >> "$1"
  n=$((n + 1))
  ( cd "$2"; eval "$line"; wait ) < /dev/null > /dev/null 2>&1
done
"""


class Ran(Struct, frozen=True):
    """A program that ran: its name and arguments; `is_changed`: in another environment
    than it was to have.
    """

    argv: tuple[str, ...]
    is_changed: bool


class Stage:
    """A work tree, and the only programs there are: each records its call."""

    def __init__(self, root: Path) -> None:
        self.work, self.programs, self._log = root / "work", root / "programs", root / "log"
        self.work.mkdir()
        self.programs.mkdir()
        self._fill()
        for name in PROGRAMS:
            path = self.programs / name
            path.write_text(SHIM.format(log=self._log))
            path.chmod(0o755)
        self.environment = {"PATH": str(self.programs), "HOME": str(root), "x": "x"}

    def _fill(self) -> None:
        for name, text in {"CANARY": "here", "a": "a", "a.txt": "a"}.items():
            (self.work / name).write_text(text)
        (self.work / "evil").write_text(SHIM.format(log=self._log))
        (self.work / "evil").chmod(0o755)

    def refill(self) -> None:
        """Make the work tree anew."""
        shutil.rmtree(self.work)
        self.work.mkdir()
        self._fill()

    def state(self) -> str:
        """Return what the work tree holds."""
        found: dict[str, str] = {}
        for folder, _, names in os.walk(self.work):
            found |= {
                f"{folder}/{name}": Path(folder, name).read_text(errors="replace") for name in names
            }
        return json.dumps(found, sort_keys=True)

    def run(self, lines: Sequence[str]) -> list[list[Ran]]:
        """Run each line in a bash of its own; return what each one ran."""
        self._log.write_text("")
        fed = b"".join(line.encode("utf-8", "surrogateescape") + b"\0" for line in lines)
        driver = subprocess.Popen(
            [
                "/bin/bash",
                "--noprofile",
                "--norc",
                "-c",
                DRIVER,
                "driver",
                str(self._log),
                str(self.work),
            ],
            stdin=subprocess.PIPE,
            env=self.environment,
            start_new_session=True,
        )
        try:
            driver.communicate(fed, timeout=300 + len(lines) / 5)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
        return self._read(len(lines))

    def _read(self, count: int) -> list[list[Ran]]:
        found: list[list[Ran]] = [[] for _ in range(count)]
        fields = iter(self._log.read_bytes().decode("utf-8", "surrogateescape").split("\0"))
        current = -1
        for field in fields:
            if field == "line":
                current = int(next(fields))
            elif field == "run":
                place, home, others, arguments = (
                    next(fields),
                    next(fields),
                    next(fields),
                    int(next(fields)),
                )
                argv = tuple(next(fields) for _ in range(arguments + 1))
                is_same = (
                    place == self.environment["PATH"]
                    and home == self.environment["HOME"]
                    and not others
                )
                found[current].append(Ran(argv, not is_same))
        return found
