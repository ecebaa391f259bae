"""The system's own timers: user timers of systemd, else lines of the user's crontab."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from codeloop.automation.schedule.cron import parse_cron
from codeloop.automation.schedule.store import Schedule
from codeloop.kit.processes import find_program, with_absolute_path
from codeloop.schema.bounds.automation import SCHEDULE_TIMER
from codeloop.schema.errors import CodeloopError

PROGRAM = (sys.executable, "-P", "-m", "codeloop")
DUE = (*PROGRAM, "schedule", "run", "--due")
"""What a timer starts."""
MARK = "# codeloop schedule"
CATCH_UP = f"{MARK}: catches up what was missed"
EVERY_QUARTER = "4,19,34,49 * * * *"
"""When a crontab looks for what was missed while the machine slept; not when everything else begins."""
_FOLDERS = ("CODELOOP_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""The variables that say where our own files are: a timer has to know them before it finds what is scheduled."""


class Timers(Protocol):
    """What starts `DUE` when something is due."""

    def install(self, schedule: Schedule) -> None:
        """Start at the times of a schedule. Raises CodeloopError."""
        ...

    def remove(self, schedule_id: str) -> None:
        """Leave nothing of a schedule behind. Raises CodeloopError."""
        ...


def keep_environment() -> dict[str, str]:
    """Return the variables that a timer's run needs; no key is among them."""
    environment = with_absolute_path(os.environ)
    return {name: environment[name] for name in ("PATH", *_FOLDERS) if environment.get(name)}


def choose_timers() -> str:
    """Return `systemd` where user timers work, else `cron`. Raises CodeloopError if there is neither."""
    path = os.environ.get("PATH")
    if find_program("systemctl", path) is not None:
        answer = _run(["systemctl", "--user", "is-system-running"], is_checked=False)
        if answer.stdout.strip() in {"running", "degraded", "starting", "initializing"}:
            return "systemd"
    if find_program("crontab", path) is not None:
        return "cron"
    raise CodeloopError(
        "This machine has no timers for users: systemd does not run for you, and cron is not installed."
    )


def open_timers(kind: str) -> Timers:
    """Return the timers of this kind."""
    return SystemdTimers() if kind == "systemd" else Crontab()


class SystemdTimers:
    """A service and a timer for each schedule, in the user's own folder of units."""

    def __init__(self) -> None:
        config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        self._folder = Path(config) / "systemd" / "user"

    def install(self, schedule: Schedule) -> None:
        """Write the units and start the timer. It catches up after sleep and after the machine was off, once."""
        name = f"codeloop-{schedule.id}"
        variables = "".join(
            f"Environment={_quote_unit(f'{key}={value}')}\n" for key, value in schedule.environment.items()
        )
        calendars = "".join(f"OnCalendar={each}\n" for each in parse_cron(schedule.when).calendars())
        command = " ".join(map(_quote_unit, DUE))
        service = f"[Unit]\nDescription=codeloop schedule {schedule.id}\n\n[Service]\nType=oneshot\n"
        timer = f"[Unit]\nDescription=codeloop schedule {schedule.id}\n\n[Timer]\n{calendars}Persistent=true\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / f"{name}.service").write_text(f"{service}{variables}ExecStart={command}\n")
            (self._folder / f"{name}.timer").write_text(f"{timer}AccuracySec=1s\n\n[Install]\nWantedBy=timers.target\n")
        except OSError as error:
            raise CodeloopError(f"The timer can't be written: {error}.") from None
        _run(["systemctl", "--user", "daemon-reload"])
        _run(["systemctl", "--user", "enable", "--now", f"{name}.timer"])

    def remove(self, schedule_id: str) -> None:
        """Stop the timer and delete the units, and the stamp of its last start."""
        name = f"codeloop-{schedule_id}"
        _run(["systemctl", "--user", "disable", "--now", f"{name}.timer"], is_checked=False)
        data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
        stamp = Path(data) / "systemd" / "timers" / f"stamp-{name}.timer"
        for path in (self._folder / f"{name}.timer", self._folder / f"{name}.service", stamp):
            path.unlink(missing_ok=True)
        _run(["systemctl", "--user", "daemon-reload"])


class Crontab:
    """A marked line for each schedule, and one that catches up what was missed. All other lines stay as they are."""

    def install(self, schedule: Schedule) -> None:
        """Add the lines."""
        lines = self._read()
        command = _quote_line(schedule)
        lines = [line for line in lines if not line.endswith(CATCH_UP)]
        lines.append(f"{schedule.when} {command} {MARK} {schedule.id}")
        lines.append(f"{EVERY_QUARTER} {command} {CATCH_UP}")
        self._write(lines)

    def remove(self, schedule_id: str) -> None:
        """Remove its line, and after the last one the one that catches up."""
        lines = [line for line in self._read() if not line.endswith(f"{MARK} {schedule_id}")]
        if not any(f" {MARK} " in line for line in lines):
            lines = [line for line in lines if not line.endswith(CATCH_UP)]
        self._write(lines)

    def _read(self) -> list[str]:
        answer = _run(["crontab", "-l"], is_checked=False)
        if answer.returncode != 0 and "no crontab for" not in answer.stderr:
            raise CodeloopError(f"The crontab can't be read: {answer.stderr.strip()}.")
        return answer.stdout.splitlines() if answer.returncode == 0 else []

    def _write(self, lines: list[str]) -> None:
        if lines:
            _run(["crontab", "-"], stdin="".join(f"{line}\n" for line in lines))
        else:
            _run(["crontab", "-r"], is_checked=False)  # there may be none


def _folders(schedule: Schedule) -> list[tuple[str, str]]:
    return [(name, value) for name, value in schedule.environment.items() if name in _FOLDERS]


def _quote_line(schedule: Schedule) -> str:
    """Return the command of a crontab's line; there, a `%` ends it unless a backslash comes before."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in _folders(schedule)]
    line = " ".join([*variables, *map(shlex.quote, DUE), ">/dev/null", "2>&1"])
    return line.replace("%", r"\%")


def _quote_unit(word: str) -> str:
    """Return a word of a unit file; there, `%` and `$` begin what is replaced."""
    quoted = word.replace("\\", r"\\").replace('"', r"\"").replace("%", "%%").replace("$", "$$")
    return f'"{quoted}"'


def _run(command: list[str], *, stdin: str = "", is_checked: bool = True) -> subprocess.CompletedProcess[str]:
    environment = with_absolute_path(os.environ)
    program = find_program(command[0], environment["PATH"])
    if program is None:
        raise CodeloopError(f"{command[0]} is not installed.")
    try:
        process = subprocess.run(
            [program, *command[1:]],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env={**environment, "LC_ALL": "C"},
            timeout=SCHEDULE_TIMER.seconds,
        )
    except subprocess.TimeoutExpired:
        raise CodeloopError(f"{' '.join(command)} did not answer. Try again.") from None
    if is_checked and process.returncode != 0:
        raise CodeloopError(f"{' '.join(command)} failed: {process.stderr.strip() or process.returncode}.")
    return process
