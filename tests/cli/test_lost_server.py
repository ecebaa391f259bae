"""A server that goes away: it is said, what was typed is kept and sent once,
and what happened meanwhile is shown.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, events, serving, steps
from tests.cli.terminal import Terminal
from tests.support.answers import Answer

DONE = Answer(text="Everything is done.", deltas=3)
WAIT = bash("touch begun; until [ -e go ]; do sleep 0.02; done")


@contextmanager
def served(desk: Desk, port: str = "0", **environment: str) -> Generator[tuple[str, int]]:
    """Serve the desk's project; yield URL and process id.
    The server may have been killed in between.
    """
    server = desk.start("serve", "--port", port, **environment)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1], server.pid
    finally:
        server.kill()
        server.communicate(timeout=60)


@contextmanager
def hold_port() -> Generator[str]:
    """Hold a port for a server that is started again: meanwhile,
    no other program of this machine is given it.
    """
    with socket.socket() as held:
        # It does not listen: with this option, a server that asks for this very port still gets it.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield str(held.getsockname()[1])


def prompts(desk: Desk) -> list[str]:
    """Return what was said in the newest session, in its order."""
    (exported,) = [desk.run("export").stdout]
    found = events(exported.replace("\n", "") + "\n")[0]
    users = [message for message in found["messages"] if message["info"]["role"] == "user"]
    return [
        part["text"] for message in users for part in message["parts"] if part["type"] == "text"
    ]


@pytest.mark.slow
def test_a_prompt_that_was_typed_meanwhile_is_sent_once_wherever_the_server_is_by_then(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(DONE)) as model, hold_port() as first, hold_port() as second:
        desk.use(model)
        with served(desk, first) as (url, pid):
            it = Terminal(desk, "attach", url)
            it.wait_for("> ")
            it.type("one")
            it.wait_for("Everything is done.")
            os.kill(pid, signal.SIGKILL)
            it.wait_for("is lost: the server closed it. It is tried again now")
            it.type("two")
            it.wait_for("sent as soon as the server is back")
        with served(desk, second, CODELOOP_SERVER_PASSWORD="another one") as (other, pid):
            assert other != url
            it.wait_for(f"The server was started again at {other}.")
            it.wait_for("Everything is done.")
            os.kill(pid, signal.SIGTERM)
            it.wait_for("is lost")
        with served(desk, second, CODELOOP_SERVER_PASSWORD="a third one"):
            it.wait_for(f"The server at {other} is back.")
            it.type("three")
            it.wait_for("Everything is done.")
            it.type("/exit")
            assert it.end() == 0
        assert prompts(desk) == ["one", "two", "three"]


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["json", "text"])
def test_a_turn_that_the_server_did_not_live_to_end_is_no_success_and_not_begun_again(
    tmp_path: Path, format_: str
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(WAIT, DONE)) as model, hold_port() as port:
        desk.use(model)
        with served(desk, port) as (url, pid):
            running = desk.start("run", "--attach", url, "--format", format_, "go")
            wait_for(desk.work / "begun", running)
            os.kill(pid, signal.SIGKILL)
        with served(desk, port):
            stdout, stderr = running.communicate(timeout=60)
        assert running.returncode == 1
        assert "is lost: the server closed it" in stderr
        assert f"The server at {url} is back." in stderr
        shown = events(stdout)[-1]["message"] if format_ == "json" else stderr
        assert "The server ended while it worked on this." in shown
        assert "ses_" in (stdout if format_ == "json" else stderr)
        assert prompts(desk) == ["go"]


@pytest.mark.slow
def test_a_server_that_stays_away_ends_it_with_the_sessions_name(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits={"CLIENT_GONE_TIME": 300})
    with serving(steps(WAIT, DONE)) as model:
        desk.use(model)
        with served(desk) as (url, pid):
            made = desk.start("run", "--attach", url, "go")
            wait_for(desk.work / "begun", made)
            os.kill(pid, signal.SIGKILL)
            stdout, stderr = made.communicate(timeout=60)
    assert (made.returncode, stdout) == (1, "")
    assert "did not come back within 0.3 s" in stderr
    assert f"codeloop run --attach {url} --session ses_" in stderr


@pytest.mark.slow
def test_a_conversation_gives_a_lost_server_up_and_says_how_to_go_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits={"CLIENT_GONE_TIME": 300})
    with serving(steps(DONE)) as model:
        desk.use(model)
        with served(desk) as (url, pid):
            it = Terminal(desk, "attach", url)
            it.wait_for("> ")
            it.type("one")
            it.wait_for("Everything is done.")
            os.kill(pid, signal.SIGKILL)
            it.wait_for("did not come back within 0.3 s")
            assert it.end() == 1
    assert f"codeloop attach {url} --session ses_" in it.shown.replace("\r\n", " ")


@pytest.mark.slow
def test_a_server_that_is_frozen_is_said_to_be_silent(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(DONE)) as model:
        desk.use(model)
        with served(desk) as (url, pid):
            it = Terminal(desk, "attach", url)
            it.wait_for("> ")
            it.type("one")
            it.wait_for("Everything is done.")
            os.kill(pid, signal.SIGSTOP)
            it.wait_for("The connection is silent")
            it.type("two")
            os.kill(pid, signal.SIGCONT)
            it.wait_for("is back")
            it.wait_for("Everything is done.")
            it.type("/exit")
            assert it.end() == 0
        assert prompts(desk) == ["one", "two"]


def wait_for(path: Path, running: "subprocess.Popen[Any]") -> None:
    while not path.exists():
        assert running.poll() is None, running.communicate()
        try:
            running.wait(0.02)
        except subprocess.TimeoutExpired:
            continue


@pytest.mark.slow
def test_lines_of_a_pipe_give_a_lost_server_up_once_and_are_told_how_to_resume(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, limits={"CLIENT_GONE_TIME": 300})
    with serving(steps(DONE)) as model:
        desk.use(model)
        with served(desk) as (url, pid):
            made = subprocess.Popen(
                [*desk.command, "attach", url],
                **desk.options(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert made.stdin is not None
            assert made.stdout is not None
            made.stdin.write("one\n")
            made.stdin.flush()
            assert made.stdout.readline() == "Everything is done.\n"
            os.kill(pid, signal.SIGKILL)
            with suppress(BrokenPipeError):  # it may have given the server up by now
                made.stdin.write("two\n")
                made.stdin.flush()
            _, stderr = made.communicate(timeout=60)
    assert made.returncode == 1
    assert stderr.count("did not come back within 0.3 s") == 1
    assert f"Resume with: codeloop attach {url} --session ses_" in stderr
