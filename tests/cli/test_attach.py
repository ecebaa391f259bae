"""`run --attach` and `attach`: the real program against a real server of its own,
in pipes and in a terminal.
"""

import json
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import (
    UNCONFINED,
    Desk,
    bash,
    call,
    events,
    last_work,
    lives,
    result,
    serving,
    steps,
)
from tests.cli.terminal import Terminal
from tests.support.answers import Answer
from tests.support.model_server import ModelServer

DONE = Answer(text="Everything is done.", deltas=3)
WAIT = bash("echo $$ > pid; touch begun; until [ -e go ]; do sleep 0.02; done")


class Stage:
    """A desk, its model, and a server of it. `there`: the flags that reach the server."""

    def __init__(self, desk: Desk, model: ModelServer, url: str, pid: int) -> None:
        self.desk = desk
        self.model = model
        self.url = url
        self.pid = pid
        self.there = ("--attach", url)

    def until(self, name: str) -> Path:
        """Wait for a file in the work tree."""
        path = self.desk.work / name
        end = time.monotonic() + 60
        while not path.exists():
            assert time.monotonic() < end, f"{name} never came"
            time.sleep(0.02)
        return path


@contextmanager
def stage(
    tmp_path: Path, answers: Callable[[Any], Answer], **more: Any
) -> Generator[Stage, None, None]:
    desk = Desk(tmp_path)
    with serving(answers) as model:
        desk.use(model, **more)
        server = desk.start("serve", "--port", "0")
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert " on http://" in line
            yield Stage(desk, model, line.split()[-1], server.pid)
        finally:
            server.terminate()
            server.communicate(timeout=60)


def kinds(stdout: str) -> list[str]:
    return [line["type"] for line in events(stdout)]


@pytest.mark.slow
def test_a_turn_on_a_server_is_told_as_one_of_this_process(tmp_path: Path) -> None:
    with stage(tmp_path, steps(bash("echo hi > made; cat made"), DONE)) as it:
        there = it.desk.run("run", *it.there, "--format", "json", "hello")
        (it.desk.work / "made").unlink()
        here = it.desk.run("run", "--format", "json", "hello")
        assert kinds(there.stdout) == kinds(here.stdout)
        varies = {"sessionID", "durationMs"}
        ended = [
            {k: v for k, v in result(done).items() if k not in varies} for done in (there, here)
        ]
        assert ended[0] == ended[1]
        assert (ended[0]["text"], ended[0]["exitCode"]) == ("Everything is done.", 0)
        text = it.desk.run("run", *it.there, "hello")
        assert text.stdout == "Everything is done.\n"
        assert "✓ bash" in text.stderr


@pytest.mark.slow
def test_a_session_decides_its_directory_and_a_fork_leaves_it_alone(tmp_path: Path) -> None:
    with stage(tmp_path, steps(bash("pwd > where"), DONE)) as it:
        other = tmp_path / "other"
        other.mkdir()
        first = result(
            it.desk.run("run", *it.there, "--dir", "../other", "--format", "json", "one")
        )
        assert (other / "where").read_text() == f"{other}\n"
        (other / "where").unlink()
        again = it.desk.run("run", *it.there, "-s", first["sessionID"], "--format", "json", "two")
        assert result(again)["sessionID"] == first["sessionID"]
        assert (other / "where").exists()
        assert not (it.desk.work / "where").exists()
        last = it.desk.run(
            "run", *it.there, "--dir", str(other), "-c", "--fork", "--format", "json", "three"
        )
        assert result(last)["sessionID"] != first["sessionID"]
        refused = it.desk.run("run", *it.there, "-c", "four")
        assert (refused.returncode, "no session in this directory" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_files_are_sent_with_their_content(tmp_path: Path) -> None:
    with stage(tmp_path, steps(DONE)) as it:
        (it.desk.work / "notes.json").write_text('{"the needle": 1}')
        assert it.desk.run("run", *it.there, "-f", "notes.json", "look").returncode == 0
        sent = next(request for request in it.model.requests if b'"tools"' in request.body)
        assert "the needle" in json.dumps(sent.json["messages"])
        (it.desk.work / "binary").write_bytes(b"\0\1")
        refused = it.desk.run("run", *it.there, "-f", "binary", "look")
        assert (refused.returncode, "not text, an image or a PDF" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--attach", "http://127.0.0.1:9", "--trust"), 2, "--trust"),
        (("--attach", "http://127.0.0.1:9", "--record", "x"), 2, "--record"),
        (("--attach", "http://127.0.0.1:9", "--offline"), 2, "--offline"),
        (("--password", "x"), 2, "--attach"),
        (("--attach", "nonsense"), 1, "http://HOST:PORT"),
        (("--attach", "http://127.0.0.1:9"), 1, "codeloop serve"),
    ],
)
def test_a_wrong_call_is_told(
    tmp_path: Path, flags: tuple[str, ...], code: int, words: str
) -> None:
    done = Desk(tmp_path).run("run", *flags, "--format", "json", "x")
    assert done.returncode == code
    assert words in result(done)["message"]


@pytest.mark.slow
def test_the_password_is_found_or_given_or_asked_for(tmp_path: Path) -> None:
    with stage(tmp_path, steps(DONE)) as it:
        wrong = it.desk.run("run", *it.there, "-p", "wrong", "x")
        assert (wrong.returncode, "--password" in wrong.stderr) == (1, True)
        stranger = Desk(tmp_path / "stranger")
        stranger.folder.mkdir()
        unknown = stranger.run("run", *it.there, "x")
        assert (unknown.returncode, "CODELOOP_SERVER_PASSWORD" in unknown.stderr) == (1, True)
        (file,) = (it.desk.home / "state" / "server").iterdir()
        password = json.loads(file.read_text())["password"]
        for known in (
            stranger.run("run", *it.there, "-p", password, "x"),
            stranger.run("run", *it.there, "x", CODELOOP_SERVER_PASSWORD=password),
        ):
            assert (known.returncode, known.stdout) == (0, "Everything is done.\n")


@pytest.mark.slow
def test_an_interrupt_ends_the_turn_on_the_server(tmp_path: Path) -> None:
    with stage(tmp_path, steps(WAIT, DONE), **UNCONFINED) as it:
        running = it.desk.start("run", *it.there, "--format", "json", "go")
        it.until("begun")
        shell = int(it.until("pid").read_text())
        running.send_signal(signal.SIGINT)
        stdout, _ = running.communicate(timeout=60)
        assert running.returncode == 130
        assert events(stdout)[-1]["reason"] == "interrupted"
        assert not lives(shell)


@pytest.mark.slow
def test_each_line_of_a_pipe_is_a_prompt(tmp_path: Path) -> None:
    def choose(received: Any) -> Answer:
        prompts = [m["content"] for m in received.json["messages"] if m["role"] == "user"]
        return Answer(text=f"You said {len(prompts)}.")

    with stage(tmp_path, choose) as it:
        done = it.desk.run("attach", it.url, stdin="one\n\n!echo from the shell\n/status\ntwo")
        assert (done.returncode, done.stdout.splitlines()) == (0, ["You said 1.", "You said 3."])
        assert "from the shell" in done.stderr
        assert "model local/m, idle" in done.stderr
        other = it.desk.run(
            "attach", it.url, "-c", stdin="/clear three\n/undo it\n/model\n/theme\n"
        )
        assert other.stdout.splitlines() == ["You said 1."]
        assert "/undo takes no words." in other.stderr
        assert "Name one: /model PROVIDER/MODEL." in other.stderr
        assert "/theme (Switch theme) needs the terminal UI" in other.stderr
        again = it.desk.run("attach", it.url, "-c", stdin="/nothing\n/exit\nnever")
        assert (again.returncode, again.stdout) == (2, "")
        assert "Unknown command: /nothing" in again.stderr


@pytest.mark.slow
def test_without_a_terminal_what_is_asked_is_refused(tmp_path: Path) -> None:
    with stage(tmp_path, steps(bash("ls"), DONE), permission={"bash": "ask"}) as it:
        done = it.desk.run("attach", it.url, stdin="go\n")
        assert done.returncode == 5
        assert "nobody can be asked" in done.stderr


@pytest.mark.slow
def test_a_conversation_in_a_terminal(tmp_path: Path) -> None:
    """A question is asked, prompts queue and can be changed,
    others' prompts and the server's commands are shown.
    """

    def choose(received: Any) -> Answer:
        return DONE if b"begun" in received.body else WAIT

    with stage(tmp_path, choose, permission={"bash": "ask"}) as it:
        (it.desk.work / "notes.txt").write_text("the needle")
        terminal = Terminal(it.desk, "attach", it.url)
        terminal.wait_for("/help lists the commands")
        terminal.type("read @notes.txt and @nothing")
        terminal.wait_for("Run a command (bash)")
        terminal.wait_for("or what to do instead: ")
        terminal.type("y")
        it.until("begun")
        terminal.type("a slip")
        terminal.wait_for("queued")
        terminal.type("never mind")
        terminal.wait_for("queued")
        terminal.type("/queue edit 1 as meant")
        terminal.wait_for("Changed.")
        terminal.type("/queue cancel 2")
        terminal.wait_for("Cancelled.")
        terminal.type("/queue")
        terminal.wait_for("1 as meant")
        (it.desk.work / "go").touch()
        terminal.wait_for("Everything is done.")
        terminal.wait_for("2 steps")
        sent = json.dumps(last_work(it.model).json["messages"])
        assert "the needle" in sent
        assert "as meant" in sent
        assert "never mind" not in sent
        session = terminal.shown.split("ses_")[1].split()[0]
        it.desk.run("run", *it.there, "-s", f"ses_{session}", "--auto", "from elsewhere")
        terminal.wait_for("> from elsewhere")
        terminal.wait_for("Everything is done.")
        terminal.type("/agent nobody")
        terminal.wait_for("Available: build")
        terminal.type("/sessions")
        terminal.wait_for(f"* ses_{session}")
        terminal.type("/undo")
        terminal.wait_for("Undone: “from elsewhere”")
        terminal.type("/redo")
        terminal.wait_for("Redone")
        terminal.type("\x04", end="")
        assert terminal.end() == 0
        assert f"--session ses_{session}" in terminal.shown


@pytest.mark.slow
def test_ctrl_c_ends_the_turn_and_then_the_conversation(tmp_path: Path) -> None:
    with stage(tmp_path, steps(WAIT, DONE), **UNCONFINED) as it:
        terminal = Terminal(it.desk, "attach", it.url, "--plain", term="xterm")
        terminal.wait_for("> ")
        terminal.type("go")
        it.until("begun")
        shell = int(it.until("pid").read_text())
        terminal.child.send_signal(signal.SIGINT)
        terminal.wait_for("Stopping the turn;")
        terminal.wait_for("Aborted")
        terminal.wait_for("1 step")
        assert not lives(shell)
        assert it.model.requests[0].json["messages"][-1]["content"] == "go"
        terminal.child.send_signal(signal.SIGINT)
        terminal.wait_for("Ctrl-C again")
        terminal.child.send_signal(signal.SIGINT)
        assert terminal.end() == 0


@pytest.mark.slow
def test_a_question_of_the_model_is_answered_and_one_answered_elsewhere_taken_back(
    tmp_path: Path,
) -> None:
    asked = {
        "question": "Which one?",
        "header": "Which",
        "options": [{"label": "A", "description": "the first"}],
    }
    with stage(
        tmp_path,
        steps(call("question", questions=[asked]), bash("ls"), DONE),
        permission={"bash": "ask"},
    ) as it:
        terminal = Terminal(it.desk, "attach", it.url, "--plain", term="xterm")
        terminal.wait_for("> ")
        terminal.type("go")
        terminal.wait_for("A number")
        terminal.type("1")
        terminal.wait_for("Run a command (bash)")
        other = Terminal(it.desk, "attach", it.url, "-c")
        other.wait_for("or what to do instead: ")
        other.type("y")
        terminal.wait_for("answered elsewhere")
        terminal.wait_for("Everything is done.")
        for each in (terminal, other):
            each.type("\x04", end="")
            assert each.end() == 0


@pytest.mark.parametrize(
    "words", [("attach", "{url}", "--plain"), ("run", "--attach", "{url}", "hello")]
)
def test_what_a_server_says_moves_no_terminal(tmp_path: Path, words: tuple[str, ...]) -> None:
    trick = "\x1b]52;c;ZXZpbA==\x07\x1b]8;;file:///etc/passwd\x07\x9b2J\u202e"
    body = json.dumps({"name": "BadRequest", "data": {"message": f"Sorry{trick}"}}).encode()

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(400)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            del code, size

    with ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        done = Desk(tmp_path).run(*(word.format(url=url) for word in words), stdin="hello\n")
        server.shutdown()
    shown = done.stdout + done.stderr
    assert "Sorry" in shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
