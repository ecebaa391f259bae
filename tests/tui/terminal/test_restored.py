"""The terminal and what was typed come back after any end of the terminal UI."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Desk, serving, steps
from tests.support.answers import Answer
from tests.support.stored_rows import open_rows
from tests.tui.terminal.screen import ScreenTerminal

READY = "\x1b[?2004h"
BACKGROUND_JOB = """set -m
"$@" &
fg > /dev/null
echo sent to the background; bg > /dev/null; echo and; fg > /dev/null
echo ended with $?"""
"""A shell that begins its job in the background, and continues it there after it was stopped."""
JOB = """set -m; "$@"; while [ $? -gt 128 ]; do echo back in the shell; fg > /dev/null; done"""
"""A shell that has its job go on whenever it was stopped."""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="word " * 100, deltas=0, delay=0.2))) as server:
        desk.use(server)
        # A busy machine is slower than a user.
        (desk.home / "config" / "tui.json").write_text('{"leader_timeout": 60000}')
        yield desk


def until(ready: Callable[[], object], terminal: ScreenTerminal, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"{terminal.lost()}: {terminal.shown[-2000:]!r}"
        terminal.read(0.05)


@pytest.mark.slow
def test_it_takes_the_terminal_only_in_the_foreground(desk: Desk) -> None:
    terminal = ScreenTerminal(
        desk, command=["/bin/bash", "-c", BACKGROUND_JOB, "bash", *desk.command]
    )
    terminal.wait_for("describe a task")
    terminal.type("¬")
    terminal.wait_for("¬")
    terminal.type("\x1a")
    terminal.wait_for("sent to the background")
    terminal.wait_for("¬")
    terminal.type("\x7f\x04")
    terminal.wait_for("ended with 0")
    assert terminal.end() == 0
    assert terminal.lost() == ""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_and_restores_the_terminal(desk: Desk, number: signal.Signals) -> None:
    terminal = ScreenTerminal(desk)
    terminal.wait_for(READY)
    assert terminal.lost()
    terminal.child.send_signal(number)
    assert terminal.end() == 0, terminal.shown
    assert terminal.lost() == ""


@pytest.mark.slow
def test_a_killed_one_is_cleaned_up_after_and_its_draft_comes_back(desk: Desk) -> None:
    terminal = ScreenTerminal(desk)
    terminal.wait_for(READY)
    terminal.type("half a thou")
    state = desk.home / "state" / "tui"
    until(
        lambda: any(
            b"half a thou" in path.read_bytes() for path in state.rglob("drafts/new.*.json")
        ),
        terminal,
    )
    terminal.child.kill()
    until(lambda: terminal.lost() == "", terminal)
    again = ScreenTerminal(desk)
    again.wait_for("half a thou")
    again.child.send_signal(signal.SIGTERM)
    assert again.end() == 0


@pytest.mark.slow
def test_enter_sends_also_what_was_typed_before_the_start(desk: Desk) -> None:
    terminal = ScreenTerminal(desk)
    terminal.type("count\r")
    terminal.wait_for("word")
    terminal.child.send_signal(signal.SIGTERM)
    assert terminal.end() == 0


@pytest.mark.slow
def test_a_closed_terminal_ends_it(desk: Desk) -> None:
    terminal = ScreenTerminal(desk)
    terminal.wait_for(READY)
    terminal.close()
    terminal.child.wait(timeout=60)


@pytest.mark.slow
def test_a_signal_stops_the_turn_which_is_stored(desk: Desk) -> None:
    terminal = ScreenTerminal(desk, "count to a thousand")
    terminal.wait_for("word")
    terminal.child.send_signal(signal.SIGTERM)
    assert terminal.end() == 0
    assert terminal.lost() == ""
    terminal.wait_for("Resume with: codeloop --session")
    with closing(open_rows(desk.database())) as database:
        stored = [json.loads(row[0]) for row in database.execute("SELECT data FROM stored_message")]
    (answer,) = [message for message in stored if message["role"] == "assistant"]
    assert answer["error"]["name"] == "MessageAbortedError"
    assert answer["time"]["completed"]


@pytest.mark.slow
def test_it_has_the_terminal_again_after_an_editor_that_fails_and_after_any_stop(
    desk: Desk,
) -> None:
    wrapped = ["/bin/sh", "-c", JOB, "sh", "/bin/sh", "-c", '"$@"; exit 0', "sh", *desk.command]
    terminal = ScreenTerminal(desk, command=wrapped, VISUAL="/bin/false")
    terminal.wait_for("describe a task")
    terminal.type("\x18e")
    terminal.wait_for("ended with code 1")
    for stop in (
        lambda: terminal.type("\x1a"),
        lambda: os.killpg(os.tcgetpgrp(terminal.main), signal.SIGSTOP),
    ):
        stop()
        terminal.wait_for("back in the shell")
        terminal.wait_for("describe a task")
        assert terminal.lost()
    terminal.type("\x04")
    assert terminal.end() == 0
    assert terminal.lost() == ""


@pytest.mark.slow
def test_what_can_not_be_opened_is_said_with_exit_code_one(desk: Desk) -> None:
    terminal = ScreenTerminal(desk, "--session", "ses_none")
    assert terminal.end() == 1
    assert (terminal.lost(), "ses_none" in terminal.shown) == ("", True)


@pytest.mark.slow
def test_a_terminal_that_reads_nothing_keeps_it_from_nothing(desk: Desk) -> None:
    terminal = ScreenTerminal(desk, "count to a thousand")
    terminal.wait_for("word")
    for columns in range(90, 120):
        terminal.resize(columns, 50)
        time.sleep(0.02)  # what is tested is that nobody reads meanwhile
    terminal.child.send_signal(signal.SIGTERM)
    assert terminal.child.wait(60) == 0
    until(lambda: terminal.lost() == "", terminal)


@pytest.mark.slow
def test_an_error_while_drawing_restores_the_terminal(desk: Desk) -> None:
    code = "from codeloop.tui.widgets.status_bar import StatusBar; StatusBar.render_line = lambda *_: 1 / 0"
    broken = ["-c", f"{code}; from codeloop.cli.main import main; main()"]
    terminal = ScreenTerminal(desk, command=[desk.command[0], *broken])
    assert terminal.end() == 1
    assert terminal.lost() == ""
    terminal.wait_for("ZeroDivisionError: division by zero")
