"""What goes to stdout, to stderr and to a terminal: the answer alone, once,
and all the rest beside it.
"""

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import COMMAND, HANGING, Desk, bash, call, events, result, serving, steps
from tests.cli.terminal import Terminal
from tests.support.answers import Answer, Counts
from tests.support.stored_rows import open_rows

DONE = Answer(text="Everything is done.", deltas=3)
NARRATED = Answer(text="I look first.", calls=bash("echo seen").calls)
CUT = Answer(text="Half of it was said.", deltas=4, cut_after=4)
SUMMARY = "THE HAND-OVER NOTE"


def compacting(received: Any) -> Answer:
    """Fill the context with the first step, so that the conversation is summarized
    in the middle of the turn.
    """
    text = received.body.decode()
    if "Write the hand-over note now." in text:
        return Answer(text=SUMMARY)
    if '"tools"' not in text:
        return Answer(text="A title")
    if SUMMARY in text:
        return DONE
    return Answer(text="I look first.", calls=bash("echo seen").calls, counts=Counts(input=195_000))


def cutting(*answers: Answer) -> Any:
    """Serve these in their order, whatever is asked."""
    left = list(answers)

    def choose(received: Any) -> Answer:
        if b'"tools"' not in received.body:
            return Answer(text="A title")
        return left.pop(0) if len(left) > 1 else left[0]

    return choose


@pytest.mark.slow
def test_what_is_said_before_a_call_is_no_answer(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(NARRATED, DONE)) as server:
        desk.use(server)
        done = desk.run("run", "go")
        assert (done.returncode, done.stdout) == (0, "Everything is done.\n")
        lines = [
            line
            for line in done.stderr.splitlines()
            if not line.startswith("No sandbox can be had")
        ]
        assert lines[0] == "build · local/m"
        assert lines[1] == "I look first."
        assert lines[2].startswith("✓ bash")
        assert "\x1b" not in done.stderr
        limited = desk.run("run", "--max-steps", "1", "go")
        assert (limited.returncode, limited.stdout) == (4, "")
        assert "I look first." in limited.stderr


@pytest.mark.slow
def test_a_summary_in_the_middle_is_a_notice(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(compacting) as server:
        desk.use(server)
        done = desk.run("run", "go")
        assert (done.returncode, done.stdout) == (0, "Everything is done.\n")
        assert "was replaced with a summary" in done.stderr
        assert SUMMARY not in done.stderr
        shown = desk.run("session", "show")
        assert SUMMARY not in shown.stdout
        assert "replaced with a summary" in shown.stderr
        assert SUMMARY in desk.run("session", "show", "--thinking").stderr


@pytest.mark.slow
def test_a_summary_is_an_event_of_its_own_type(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(compacting) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "go")
        command = desk.run("run", "-c", "--command", "compact")
    lines = events(done.stdout)
    assert result(done)["text"] == DONE.text
    assert [line["part"]["text"] for line in lines if line["type"] == "compaction"] == [SUMMARY]
    assert [line["part"]["text"] for line in lines if line["type"] == "text"] == [
        "I look first.",
        DONE.text,
    ]
    assert (command.returncode, command.stdout) == (0, "")


@pytest.mark.slow
def test_the_half_that_a_retry_takes_back_is_not_on_stdout(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(cutting(CUT, DONE)) as server:
        desk.use(server)
        done = desk.run("run", "go")
        assert (done.returncode, done.stdout) == (0, "Everything is done.\n")
        assert "Retrying" in done.stderr
    with serving(cutting(CUT, DONE)) as server:
        desk.use(server)
        lines = events(desk.run("run", "--format", "json", "go").stdout)
    assert [line["part"]["text"] for line in lines if line["type"] == "text"] == [DONE.text]
    assert "retry" in [line["type"] for line in lines]


@pytest.mark.slow
def test_a_terminal_marks_what_a_retry_takes_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(cutting(CUT, DONE)) as server:
        desk.use(server)
        terminal = Terminal(desk, "run", "go")
        terminal.wait_for("Half of")
        terminal.wait_for("and is discarded")
        terminal.wait_for("Everything is done.\n")
        assert terminal.end() == 0


@pytest.mark.slow
def test_half_an_answer_that_failed_is_no_answer(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(cutting(Answer(text="Half.", events=None, finish="length"))) as server:
        desk.use(server)
        cut = desk.run("run", "go")
        assert (cut.returncode, cut.stdout) == (3, "Half.\n")
    refused = Answer(status=400, body='{"error": {"message": "no"}}')
    with serving(cutting(NARRATED, refused)) as server:
        desk.use(server)
        failed = desk.run("run", "go")
        assert (failed.returncode, failed.stdout) == (3, "")
        assert "I look first." in failed.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_turn_whose_reader_is_gone_ends_at_once(tmp_path: Path, form: str) -> None:
    desk = Desk(tmp_path)
    with serving(steps(bash("touch begun; sleep 600"), DONE)) as server:
        desk.use(server)
        child = desk.start("run", "--format", form, "go")
        assert child.stdout is not None
        until(desk, "begun")
        child.stdout.close()
        assert child.wait(timeout=60) == 1
        assert child.stderr is not None
        assert "Nobody reads stdout" in child.stderr.read() or form == "json"
        child.stderr.close()


def pty_run(desk: Desk, redirect: str, *, term: str = "xterm-256color", **environment: str) -> str:
    """Run in a terminal with one stream redirected; return what the terminal shows."""
    line = f'exec "$@" {redirect}'
    desk = Desk(desk.folder, {**desk.environment, **environment}, ("sh", "-c", line, "sh"))
    terminal = Terminal(desk, "run", "go", term=term)
    assert terminal.end() == 0
    return terminal.shown


@pytest.mark.slow
def test_a_terminal_and_a_pipe_get_each_what_is_theirs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    answer = Answer(text="It is **done**.\n\n- `a` first\n", deltas=7)
    with serving(steps(NARRATED, answer)) as server:
        desk.use(server)
        shown = pty_run(desk, "2> err")
        assert "I look first." in shown
        assert "It is \x1b[1mdone\x1b[0m.\n" in shown
        assert "• \x1b[36ma\x1b[0m first\n" in shown
        assert "✓ bash" not in shown
        assert "\x1b" not in (desk.work / "err").read_text()
        shown = pty_run(desk, "> out")
        assert (desk.work / "out").read_text() == "It is **done**.\n\n- `a` first\n"
        assert "I look first." in shown
        assert "done" not in shown
        plain = pty_run(desk, "", term="dumb")
        assert "It is **done**." in plain
        assert "\x1b" not in plain
        assert "\r" not in plain
        quiet = pty_run(desk, "", NO_COLOR="1")
        assert "It is **done**." in quiet
        assert "\x1b[1m" not in quiet


@pytest.mark.slow
def test_nothing_that_the_model_says_steers_the_terminal(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    bad = "**\x1b]0;title\x07** `\x1b[2J`\n```\n\x1b[31m\n```\n| \x1b[1m | b |\n|---|---|\n| 日本 | \u202e |\n"
    with serving(
        steps(bash("printf '\\033[2J\\033]0;t\\007'; sleep 1"), Answer(text=bad, deltas=30))
    ) as server:
        desk.use(server)
        shown = pty_run(desk, "")
    for steering in ("\x1b]0", "\x07", "\x1b[2J", "\x1b[31m\n", "\u202e"):
        assert steering not in shown


@pytest.mark.slow
def test_a_terminal_shows_what_is_waited_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    work = bash(
        "for i in 1 2 3; do echo line $i; done; touch begun; until [ -e go ]; do sleep 0.02; done"
    )
    is_shown = threading.Event()
    with serving(
        steps(Answer(text="Soon.", until=is_shown.is_set, calls=work.calls), DONE)
    ) as server:
        desk.use(server)
        terminal = Terminal(desk, "run", "go", term="xterm")
        terminal.wait_for("build · local/m")
        terminal.wait_for("… Waiting for the model  ")
        terminal.wait_for(" s")
        assert re.search(r"… Waiting for the model  \d+ s", terminal.shown)
        is_shown.set()
        terminal.wait_for("… bash   for i in 1 2 3;")
        terminal.wait_for("line 3")
        (desk.work / "go").touch()
        terminal.wait_for("Everything is done.\n")
        assert terminal.end() == 0
        (desk.work / "go").unlink()
        (desk.work / "begun").unlink()
        piped = desk.start("run", "go")
        until(desk, "begun")
        (desk.work / "go").touch()
        stdout, stderr = piped.communicate(timeout=60)
    assert (stdout, "Waiting" in stderr, "…" in stderr) == ("Everything is done.\n", False, False)


@pytest.mark.slow
def test_calls_of_a_subagent_are_shown_indented(tmp_path: Path) -> None:
    def choose(received: Any) -> Answer:
        text = received.body.decode()
        if '"tools"' not in text:
            return Answer(text="A title")
        if "count the lines" in text and "hand it over" not in text:
            return DONE if "counted 3" in text else bash("echo counted 3; echo second")
        task = call(
            "task", description="Count lines", prompt="count the lines", subagent_type="general"
        )
        return DONE if "task_result" in text else task

    desk = Desk(tmp_path)
    with serving(choose) as server:
        desk.use(server)
        done = desk.run("run", "hand it over")
    assert (done.returncode, done.stdout) == (0, "Everything is done.\n")
    (line,) = [line for line in done.stderr.splitlines() if "counted 3" in line]
    assert line.startswith("  Count lines (@general subagent): ✓ bash")


@pytest.mark.slow
def test_the_answer_to_the_own_prompt_is_printed_when_another_one_waits(tmp_path: Path) -> None:
    """Two runs of one session on a server: each gets the answer to what it asked."""

    def choose(received: Any) -> Answer:
        text = received.body.decode()
        if '"tools"' not in text:
            return Answer(text="A title")
        if "the second" in text:
            return Answer(text="Answer two.")
        return Answer(text="Answer one.", until=is_second_stored if "the first" in text else None)

    def is_second_stored() -> bool:
        with closing(open_rows(desk.database())) as database:
            sql = "SELECT 1 FROM stored_part WHERE data LIKE '%the second%'"
            return database.execute(sql).fetchone() is not None

    desk = Desk(tmp_path)
    with serving(choose) as server:
        desk.use(server)
        serve = desk.start("serve", "--port", "0")
        try:
            assert serve.stdout is not None
            url = serve.stdout.readline().split()[-1]
            made = result(
                desk.run("run", "--attach", url, "--format", "json", "--title", "T", "zero")
            )["sessionID"]
            first = desk.start("run", "--attach", url, "-s", made, "the first")
            wait_for(lambda: any(b"the first" in request.body for request in server.requests))
            second = desk.run("run", "--attach", url, "-s", made, "the second")
            stdout, _ = first.communicate(timeout=60)
        finally:
            serve.terminate()
            serve.communicate(timeout=60)
    assert (stdout, second.stdout) == ("Answer one.\n", "Answer two.\n")


@pytest.mark.slow
def test_an_answer_that_nobody_could_read_is_no_success(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(DONE)) as server:
        desk.use(server)
        done = subprocess.run(
            ["sh", "-c", '"$@" > /dev/full', "sh", *COMMAND, "run", "go"],
            **desk.options(), capture_output=True, text=True, timeout=HANGING, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "stdout was closed" in done.stderr
    assert os.linesep not in done.stdout


def delegating(received: Any) -> Answer:
    """Hand work to a subagent in the background, and answer without it."""
    text = received.body.decode()
    if '"tools"' not in text:
        return Answer(text="A title")
    if "count the lines" in text and "hand it over" not in text:
        work = "touch begun; until [ -e go ]; do sleep 0.02; done; touch counted"
        return Answer(text="There are 3.") if "tool_call_id" in text else bash(work)
    task = call(
        "task",
        description="Count lines",
        prompt="count the lines",
        subagent_type="general",
        run_in_background=True,
    )
    return DONE if "Started." in text else task


def until(desk: Desk, name: str) -> None:
    """Wait for a file in the project."""
    wait_for((desk.work / name).exists)


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, is_so
        time.sleep(0.02)


def until_said(child: subprocess.Popen[str], words: str) -> str:
    """Read stderr up to a line that holds the words."""
    assert child.stderr is not None
    said = ""
    for line in child.stderr:
        said += line
        if words in line:
            return said
    raise AssertionError(f"{words!r} was never said: {said}")


@pytest.mark.slow
def test_a_subagent_in_the_background_is_waited_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(delegating) as server:
        desk.use(server)
        running = desk.start("run", "hand it over")
        until_said(running, "Waiting for background work: Count lines (@general subagent) [ses_")
        (desk.work / "go").touch()
        stdout, stderr = running.communicate(timeout=60)
    assert (running.returncode, stdout) == (0, "Everything is done.\n")
    assert "Count lines (@general subagent): done. See: codeloop session show ses_" in stderr
    assert (desk.work / "counted").exists()
    assert " of 200k context (" in stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_subagent_that_is_not_waited_for_is_told_to_be_stopped(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(delegating) as server:
        desk.use(server)
        done = desk.run("run", "--no-wait", "hand it over")
        assert (done.returncode, done.stdout) == (0, "Everything is done.\n")
        assert "Stopped: Count lines (@general subagent) [ses_" in done.stderr
        running = desk.start("run", "hand it over")
        until_said(running, "Waiting for background work")
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=60)
        assert (running.returncode, stdout) == (130, "Everything is done.\n")
        assert "Stopped: Count lines" in stderr
        for seconds in (
            "6",
            "60",
        ):  # on a busy machine, even the answer may take longer than the first
            over = desk.run("run", "--timeout", seconds, "--format", "json", "hand it over")
            assert (result(over)["reason"], over.returncode) == ("timeout", 124)
            if result(over)["text"]:
                break
        assert result(over)["text"] == DONE.text
    assert not (desk.work / "counted").exists()


@pytest.mark.slow
def test_a_background_that_does_not_end_is_waited_for_up_to_a_limit(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits={"BACKGROUND_WAIT": 600})
    with serving(delegating) as server:
        desk.use(server)
        over = desk.run("run", "--format", "json", "hand it over")
    assert (result(over)["reason"], result(over)["text"]) == ("limit", DONE.text)
    assert result(over)["message"].startswith(
        "The background subagents did not finish within 0.01 minutes."
    )
    assert over.returncode == result(over)["exitCode"] == 4
    assert "Stopped: Count lines (@general subagent) [ses_" in over.stderr
    assert not (desk.work / "counted").exists()


@pytest.mark.slow
def test_a_subagent_on_a_server_goes_on_when_nobody_waits(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(delegating) as server:
        desk.use(server)
        serve = desk.start("serve", "--port", "0")
        try:
            assert serve.stdout is not None
            url = serve.stdout.readline().split()[-1]
            done = desk.run("run", "--attach", url, "--no-wait", "hand it over")
            assert (done.returncode, done.stdout) == (0, "Everything is done.\n")
            assert "Still working on the server: Count lines" in done.stderr
            (desk.work / "go").touch()
            until(desk, "counted")
        finally:
            serve.terminate()
            serve.communicate(timeout=60)
