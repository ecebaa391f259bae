"""Commands of the model in the sandbox of this machine, by the real program: what is told of what they may not do."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, events, serving, steps
from tests.support.answers import Answer
from tests.support.sandboxed import is_sandboxed
from tests.workspace.sandbox.test_bounds import BOMB

pytestmark = pytest.mark.skipif(not is_sandboxed(), reason="no sandbox can be had here")


def run(desk: Desk, *commands: str, auto: bool = True, **settings: Any) -> list[str]:
    """Have the model run commands; return what it was told of each."""
    calls = [bash(command, f"call_{number}") for number, command in enumerate(commands)]
    with serving(steps(*calls, Answer(text="Done."))) as server:
        desk.use(server, sandbox={"mode": "required", "network": "off"}, **settings)
        done = desk.run("run", *(["--auto"] if auto else []), "--format", "json", "go")
    parts = [event["part"] for event in events(done.stdout) if event["type"] == "tool_use"]
    assert len(parts) == len(commands), done.stderr
    return [part["state"].get("output") or part["state"].get("error") for part in parts]


def test_a_fork_bomb_and_a_memory_hog_are_ended_and_the_model_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits={"SANDBOX_PROCESSES": 320, "SANDBOX_MEMORY": 1})
    (desk.work / "bomb.py").write_text(BOMB)
    hog = "import time; x = b'x' * (1 << 30); time.sleep(20)"
    bomb, memory, after = run(desk, f"python3 {desk.work}/bomb.py", f'python3 -c "{hog}"', "echo goes on")
    assert "it used more than 320 processes and threads, which is all that it may here" in bomb
    assert "MB of memory, which is all that it may here" in memory
    assert after == "goes on\n"
    assert subprocess.run(["pgrep", "-f", f"{desk.work}/bomb.py"], check=False).returncode


def test_a_secret_file_is_written_when_that_was_allowed_and_stays_hidden_else(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / ".env").write_text("A=the-secret\n")
    (desk.work / "script.sh").write_text("echo A=3 > .env; cat .env")
    hidden, written, after = run(desk, "bash script.sh", "echo A=changed > .env", "bash script.sh")
    assert (desk.work / ".env").read_text() == "A=changed\n"
    assert "the-secret" not in hidden
    assert "(no output)" in written
    assert "changed" not in after
    for told in (hidden, after):
        assert "blocked: read of" in told
