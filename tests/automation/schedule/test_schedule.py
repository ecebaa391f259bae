"""`codeloop schedule`, with stand-ins for `crontab` and `systemctl` that refuse
what the real ones refuse.
"""

import json
import os
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, serving, steps
from tests.faults.test_kill import wait_for
from tests.support.answers import Answer

MINE = "# mine\n17 3 * * * echo 100\\% > /dev/null\n\n"
CRONTAB = """
import pathlib, re, sys
table = pathlib.Path(__file__).with_name("table")
match sys.argv[1:]:
    case ["-l"] if table.exists():
        sys.stdout.write(table.read_text())
    case ["-l"] | ["-r"] if not table.exists():
        sys.exit("no crontab for user")
    case ["-r"]:
        table.unlink()
    case ["-"]:
        text = sys.stdin.read()
        for line in text.splitlines():
            if line and not line.startswith("#") and not re.match(r"([0-9*,/a-z-]+ +){5}\\S", line):
                sys.exit(f"errors in crontab file, can't install: {line}")
            assert len(line) < 1000 and text.endswith("\\n")
        table.write_text(text)
    case _:
        sys.exit(f"crontab: usage error: {sys.argv[1:]}")
"""
SYSTEMCTL = """
import os, pathlib, sys
units = pathlib.Path(os.environ["HOME"], ".config/systemd/user")
state = pathlib.Path(__file__).with_name("active")
active = set(state.read_text().split()) if state.exists() else set()
match sys.argv[1:]:
    case ["--user", "is-system-running"]:
        print("running")
    case ["--user", "daemon-reload"]:
        pass
    case ["--user", "enable", "--now", name]:
        timer, service = units / name, units / name.replace(".timer", ".service")
        if not (timer.exists() and service.exists()):
            sys.exit(f"Unit file {name} does not exist.")
        assert "[Timer]\\nOnCalendar=" in timer.read_text() and "[Service]" in service.read_text()
        active.add(name)
    case ["--user", "disable", "--now", name] if (units / name).exists():
        active.discard(name)
    case _:
        sys.exit(f"systemctl: {sys.argv[1:]}")
state.write_text(" ".join(active))
"""
NOTIFY = """
import pathlib, sys
with pathlib.Path(__file__).with_name("notified").open("a") as file:
    file.write(" | ".join(sys.argv[1:]) + "\\n")
"""


def stand_in(folder: Path, name: str, code: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / f"{name}.py"
    program.write_text(code)
    # Not as the interpreter of a script: the path of a clone may have blanks.
    (folder / name).write_text(
        f'#!/bin/sh\nexec {shlex.join([sys.executable, "-S", str(program)])} "$@"\n'
    )
    (folder / name).chmod(0o755)


def stored(desk: Desk) -> list[dict[str, Any]]:
    return json.loads((desk.home / "data" / "schedule" / "schedules.json").read_text())


def rewind(desk: Desk, days: int) -> None:
    """Make it as if the machine had slept for days."""
    path = desk.home / "data" / "schedule" / "schedules.json"
    (row,) = stored(desk)
    path.write_text(json.dumps([{**row, "last_due": row["last_due"] - days * 86_400_000}]))


def start_as_cron(line: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a line's command as cron does, which has next to nothing in its environment."""
    command = line.split(maxsplit=5)[5].replace("\\%", "%")
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
    return subprocess.Popen(["/bin/sh", "-c", command], cwd=folder, env=environment)


@pytest.mark.slow
def test_a_crontab_runs_what_was_missed_once_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    stand_in(programs, "crontab", CRONTAB)
    stand_in(programs, "notify-send", NOTIFY)
    stand_in(programs, "systemctl", "import sys; sys.exit('offline')")
    (programs / "table").write_text(MINE)
    desk = Desk(tmp_path, {"PATH": f"{programs}:{os.environ['PATH']}"})
    with serving(steps(bash("sleep 1"), Answer(text="Nothing new."))) as server:
        desk.use(server, sandbox="off", permission={"bash": "allow"})
        hour = (
            datetime.now().astimezone().hour + 12
        ) % 24  # far from now, so that it does not come meanwhile
        added = desk.run(
            "schedule", "add", f"0 {hour} * * *", "--max-cost", "0.5", "look", "for", "news"
        )
        assert "look-for-news runs next at" in added.stdout, added.stderr
        assert "by cron" in added.stdout
        table = (programs / "table").read_text()
        assert table.startswith(MINE)
        line, catch_up = table[len(MINE) :].splitlines()
        assert line.startswith(f"0 {hour} * * * ")

        assert start_as_cron(line, tmp_path).wait(60) == 0  # not due yet
        assert stored(desk)[0]["runs"] == []
        rewind(desk, days=3)
        for process in [start_as_cron(each, tmp_path) for each in (line, catch_up, line)]:
            assert process.wait(60) == 0
        assert start_as_cron(catch_up, tmp_path).wait(60) == 0
        (run,) = stored(desk)[0]["runs"]
        assert (run["state"], run["text"], run["steps"]) == ("done", "Nothing new.", 2)
        assert run["due"] == stored(desk)[0]["last_due"]
        assert (
            "codeloop: look-for-news is done | Nothing new." in (programs / "notified").read_text()
        )

        assert "done" in desk.run("schedule", "list").stdout
        shown = desk.run("schedule", "show", "look-for-news").stdout
        assert f"codeloop session show {run['session_id']}" in shown
        assert "Nothing new." in desk.run("session", "show", run["session_id"]).stdout

        by_hand = desk.run("schedule", "run", "look-for-news")
        assert (by_hand.returncode, by_hand.stdout) == (0, "Nothing new.\n")
        assert [each["state"] for each in stored(desk)[0]["runs"]] == ["done", "done"]
    failed = desk.run("schedule", "run", "look-for-news")  # the service is gone
    assert failed.returncode == 1
    assert stored(desk)[0]["runs"][-1]["state"] == "failed"
    assert desk.run("schedule", "remove", "look-for-news").returncode == 0
    assert (programs / "table").read_text() == MINE
    assert not (desk.home / "data" / "schedule").exists()


@pytest.mark.slow
def test_one_runs_at_a_time_and_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    stand_in(programs, "crontab", CRONTAB)
    stand_in(programs, "systemctl", "import sys; sys.exit('offline')")
    desk = Desk(tmp_path, {"PATH": f"{programs}:{os.environ['PATH']}"})
    command = "if [ -e go ]; then sleep 60; fi; touch begun; until [ -e go ]; do sleep 0.1; done"
    with serving(steps(bash(command), Answer(text="Done."))) as server:
        desk.use(server, sandbox="off", permission={"bash": "allow"})
        desk.run("schedule", "add", "@daily", "--name", "held", "wait")
        desk.run("schedule", "add", "@daily", "--name", "slow", "--timeout", "3", "sleep")
        running = desk.start("schedule", "run", "held")
        wait_for((desk.work / "begun").exists)
        second = desk.run("schedule", "run", "slow")
        assert "one runs at a time" in second.stderr
        assert "running" in desk.run("schedule", "list").stdout
        (desk.work / "go").touch()
        assert running.communicate(timeout=60)[0] == "Done.\n"
        assert "time limit of 3 s" in desk.run("schedule", "run", "slow").stdout
        assert {row["id"]: row["runs"][-1]["state"] for row in stored(desk)} == {
            "held": "done",
            "slow": "failed",
        }


def test_systemd_gets_a_timer_that_is_persistent_and_loses_it_again(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    stand_in(programs, "systemctl", SYSTEMCTL)
    desk = Desk(tmp_path, {"PATH": f"{programs}:{os.environ['PATH']}"})
    assert desk.run("schedule", "add", "0 7 * * 1-5", "--name", "morning", "look").returncode == 0
    units = tmp_path / ".config" / "systemd" / "user"
    timer = (units / "codeloop-morning.timer").read_text()
    assert "OnCalendar=Mon,Tue,Wed,Thu,Fri *-*-* 7:0:00\nPersistent=true\n" in timer
    service = (units / "codeloop-morning.service").read_text()
    assert '"schedule" "run" "--due"' in service
    assert f'Environment="CODELOOP_HOME={desk.home}"' in service
    assert (programs / "active").read_text() == "codeloop-morning.timer"
    taken = desk.run("schedule", "add", "@daily", "--name", "morning", "look")
    assert "scheduled already" in taken.stderr
    assert desk.run("schedule", "remove", "morning").returncode == 0
    assert (list(units.iterdir()), (programs / "active").read_text()) == ([], "")


def test_systemd_gets_what_it_expands_escaped_and_all_else_as_it_is(tmp_path: Path) -> None:
    """It expands variables in arguments, but neither in the values of variables nor
    in the name of the program.
    """
    programs = tmp_path / "bin"
    stand_in(programs, "systemctl", SYSTEMCTL)
    desk = Desk(tmp_path, {"PATH": f"{programs}:{os.environ['PATH']}:/odd/$HOME/50%"})
    assert desk.run("schedule", "add", "@daily", "--name", "odd", "look").returncode == 0
    service = (tmp_path / ".config" / "systemd" / "user" / "codeloop-odd.service").read_text()
    assert ':/odd/$HOME/50%%"\n' in service


def test_what_can_not_be_installed_is_not_scheduled(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    stand_in(programs, "systemctl", "import sys; sys.exit('offline')")
    stand_in(
        programs,
        "crontab",
        "import sys; sys.exit('no crontab for user' if sys.argv[1] == '-l' else 'disk full')",
    )
    desk = Desk(tmp_path, {"PATH": f"{programs}:{os.environ['PATH']}"})
    added = desk.run("schedule", "add", "@daily", "look")
    assert (added.returncode, "disk full" in added.stderr) == (1, True)
    assert "Nothing is scheduled" in desk.run("schedule", "list").stderr
    assert desk.run("schedule", "remove", "look").returncode == 2
    assert "is not a valid minute" in desk.run("schedule", "add", "x * * * *", "look").stderr
