"""An option means the same however the program is started: once, line by line, in the terminal UI,
in an editor, in a program of one's own.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.editor import choose, editing, text
from tests.cli.program import Desk, last_work, serving, steps
from tests.cli.terminal import Terminal, end_session
from tests.cli.test_variant import HELLO, use
from tests.support.model_server import ModelServer

FLAGS = ("--agent", "other", "--variant", "high", "-m", "local/n")
LIBRARY = """
import asyncio, codeloop
async def main():
    options = {"agent": "other", "variant": "high", "model": "local/n"}
    async with codeloop.open(".", **options) as project:
        await project.ask("hello")
asyncio.run(main())
"""


def run_once(desk: Desk, _server: ModelServer) -> None:
    assert desk.run("run", "-c", *FLAGS, "hello").returncode == 0


def converse(desk: Desk, _server: ModelServer) -> None:
    assert desk.run("--plain", "-c", *FLAGS, stdin="hello\n").returncode == 0


def show(desk: Desk, server: ModelServer) -> None:
    """The session had another agent and model, which the options replace."""
    terminal = Terminal(desk, "-c", *FLAGS, "--prompt", "hello", term="xterm-256color")
    until = time.monotonic() + 120
    while last_work(server).json["model"] != "n" and time.monotonic() < until:
        terminal.read(0.1)
    end_session(terminal.child)
    terminal.end()


def edit(desk: Desk, _server: ModelServer) -> None:
    with editing(desk, choose("once"), *FLAGS) as editor:
        session = editor.begin(desk)["sessionId"]
        editor.ask("session/prompt", sessionId=session, prompt=text("hello"))


def call_library(desk: Desk, _server: ModelServer) -> None:
    ran = subprocess.run([sys.executable, "-c", LIBRARY], **desk.options(), check=False)
    assert ran.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("start", [run_once, converse, show, edit, call_library])
def test_agent_model_and_effort_are_those_of_the_command_line(
    tmp_path: Path, start: Callable[[Desk, ModelServer], None]
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(HELLO, HELLO)) as server:
        use(desk, server, agent={"other": {"mode": "primary", "prompt": "OTHER AGENT"}})
        settings = json.loads((desk.home / "config" / "codeloop.json").read_text())
        models = settings["provider"]["local"]["models"]
        models["n"] = models["m"]
        desk.configure(**settings)
        assert desk.run("run", "--title", "T", "first").returncode == 0
        start(desk, server)
        body = last_work(server).json
    assert (body["model"], body["reasoning_effort"]) == ("n", "high")
    assert "OTHER AGENT" in str(body["messages"][0])
