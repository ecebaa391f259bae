"""The timers that start scheduled runs: user timers of systemd, or lines of the user's crontab."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Protocol

from codeloop.kit.new_file import write_new_file
from codeloop.kit.programs import find_program, make_child_environment, make_safe_environment
from codeloop.schema.errors import CodeloopError
from codeloop_automation.bounds import SCHEDULE_TIMER
from codeloop_automation.command_lines import CODELOOP_COMMAND
from codeloop_automation.schedule.cron import parse_cron
from codeloop_automation.schedule.schedule_store import Schedule

# Every timer starts the same command, which finds out itself which schedules are due.
RUN_DUE_COMMAND = (*CODELOOP_COMMAND, "schedule", "run", "--due")
CRONTAB_MARK = "# codeloop schedule"
CATCH_UP_MARK = f"{CRONTAB_MARK}: catches up what was missed"
# cron forgets what was due while the machine slept, so a line of its own looks for that four times
# an hour. Not at minute 0, when most other jobs start.
CATCH_UP_TIMES = "4,19,34,49 * * * *"
# Timers start without the variables of the user's shell;
# without these, the command would not find the schedules.
_FOLDER_VARIABLES = (
    "CODELOOP_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
)


class Timers(Protocol):
    """A kind of timers, which start `RUN_DUE_COMMAND` at the times of schedules."""

    def install(self, schedule: Schedule) -> None:
        """Install the timer of a schedule. Raises CodeloopError."""
        ...

    def remove(self, schedule_id: str) -> None:
        """Remove the timer of a schedule completely. Raises CodeloopError."""
        ...


def select_timer_environment() -> dict[str, str]:
    """Return the variables to store with a schedule: the PATH, and the folders of codeloop's files;
    no API keys.
    """
    environment = make_safe_environment(os.environ)
    return {
        name: environment[name] for name in ("PATH", *_FOLDER_VARIABLES) if environment.get(name)
    }


def choose_timer_kind() -> str:
    """Return `systemd` if its user timers work, else `cron`.
    Raises CodeloopError if this machine has neither.
    """
    path = os.environ.get("PATH")
    if find_program("systemctl", path) is not None:
        # "degraded" means that some unit has failed, and sets an exit code other than 0;
        # timers work all the same.
        answer = _run(["systemctl", "--user", "is-system-running"], must_succeed=False)
        if answer.stdout.strip() in {"running", "degraded", "starting", "initializing"}:
            return "systemd"
    if find_program("crontab", path) is not None:
        return "cron"
    raise CodeloopError(
        "This machine has no timers for users: systemd does not run for you, and cron is not installed."
    )


def make_timers(kind: str) -> Timers:
    """Return the timers of a kind, `systemd` or `cron`."""
    return SystemdTimers() if kind == "systemd" else CrontabTimers()


class SystemdTimers:
    """Timers of systemd: a service and a timer for each schedule, in the user's folder of units."""

    def __init__(self) -> None:
        config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        self._folder = Path(config) / "systemd" / "user"

    def install(self, schedule: Schedule) -> None:
        """Write the units and start the timer."""
        # Persistent: times that were missed while the machine was off run once. AccuracySec: by
        # default systemd may start a timer up to a minute late,
        # to wake the machine for several at once.
        name = f"codeloop-{schedule.id}"
        variables = "".join(
            f"Environment={_quote_unit(f'{key}={value}')}\n"
            for key, value in schedule.environment.items()
        )
        calendars = "".join(
            f"OnCalendar={each}\n" for each in parse_cron(schedule.when).to_systemd_calendars()
        )
        command = " ".join(map(_quote_unit, RUN_DUE_COMMAND))
        service = (
            f"[Unit]\nDescription=codeloop schedule {schedule.id}\n\n[Service]\nType=oneshot\n"
        )
        timer = f"[Unit]\nDescription=codeloop schedule {schedule.id}\n\n[Timer]\n{calendars}Persistent=true\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            units = {
                "service": f"{service}{variables}ExecStart={command}\n",
                "timer": f"{timer}AccuracySec=1s\n\n[Install]\nWantedBy=timers.target\n",
            }
            for kind, text in units.items():
                write_new_file(self._folder / f"{name}.{kind}", text.encode())
        except OSError as error:
            raise CodeloopError(f"The timer can't be written: {error}.") from None
        _run(["systemctl", "--user", "daemon-reload"])
        _run(["systemctl", "--user", "enable", "--now", f"{name}.timer"])

    def remove(self, schedule_id: str) -> None:
        """Stop the timer, and delete its units and the file with the time of its last start."""
        name = f"codeloop-{schedule_id}"
        # Fails if the installation did not get as far as the timer;
        # the files are removed in any case.
        _run(["systemctl", "--user", "disable", "--now", f"{name}.timer"], must_succeed=False)
        data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
        # systemd keeps the last start of a persistent timer in a file;
        # a later schedule of this name would inherit it.
        stamp = Path(data) / "systemd" / "timers" / f"stamp-{name}.timer"
        for path in (self._folder / f"{name}.timer", self._folder / f"{name}.service", stamp):
            path.unlink(missing_ok=True)
        _run(["systemctl", "--user", "daemon-reload"])


class CrontabTimers:
    """Timers of cron: a marked line for each schedule, and one line for missed runs.
    Other lines stay as they are.
    """

    def install(self, schedule: Schedule) -> None:
        """Add the schedule's line, and the line for missed runs."""
        lines = self._read()
        command = _make_cron_command(schedule)
        lines = [line for line in lines if not line.endswith(CATCH_UP_MARK)]
        lines.append(f"{schedule.when} {command} {CRONTAB_MARK} {schedule.id}")
        lines.append(f"{CATCH_UP_TIMES} {command} {CATCH_UP_MARK}")
        self._write(lines)

    def remove(self, schedule_id: str) -> None:
        """Remove the schedule's line, and after the last schedule the line for missed runs."""
        lines = [
            line for line in self._read() if not line.endswith(f"{CRONTAB_MARK} {schedule_id}")
        ]
        if not any(f" {CRONTAB_MARK} " in line for line in lines):
            lines = [line for line in lines if not line.endswith(CATCH_UP_MARK)]
        self._write(lines)

    def _read(self) -> list[str]:
        # A user without a crontab is an error of `crontab -l`.
        answer = _run(["crontab", "-l"], must_succeed=False)
        if answer.returncode != 0 and "no crontab for" not in answer.stderr:
            raise CodeloopError(f"The crontab can't be read: {answer.stderr.strip()}.")
        return answer.stdout.splitlines() if answer.returncode == 0 else []

    def _write(self, lines: list[str]) -> None:
        if lines:
            _run(["crontab", "-"], stdin="".join(f"{line}\n" for line in lines))
        else:
            # Fails if the user has no crontab.
            _run(["crontab", "-r"], must_succeed=False)


def _make_cron_command(schedule: Schedule) -> str:
    """Return the command of a schedule's crontab line."""
    variables = [
        f"{name}={shlex.quote(value)}"
        for name, value in schedule.environment.items()
        if name in _FOLDER_VARIABLES
    ]
    # cron mails output to the user, and ends a command at a `%` that is not escaped.
    line = " ".join([*variables, *map(shlex.quote, RUN_DUE_COMMAND), ">/dev/null", "2>&1"])
    return line.replace("%", r"\%")


def _quote_unit(word: str) -> str:
    """Quote a variable or a word of RUN_DUE_COMMAND for a unit file.

    systemd expands `%h` within quotes, too, so that is escaped. `$` stays: it expands variables in
    the arguments of a command alone, which have none here.
    """
    quoted = word.replace("\\", r"\\").replace('"', r"\"").replace("%", "%%")
    return f'"{quoted}"'


def _run(
    command: list[str], *, stdin: str = "", must_succeed: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a program of the system. Raises CodeloopError;
    for an exit code other than 0 only if `must_succeed`.
    """
    environment = make_safe_environment(os.environ)
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
            # The text of an error is compared, so it must not be translated.
            env=make_child_environment({**environment, "LC_ALL": "C"}, "/"),
            timeout=SCHEDULE_TIMER.seconds,
        )
    except subprocess.TimeoutExpired:
        raise CodeloopError(f"{' '.join(command)} did not answer. Try again.") from None
    if must_succeed and process.returncode != 0:
        raise CodeloopError(
            f"{' '.join(command)} failed: {process.stderr.strip() or process.returncode}."
        )
    return process
