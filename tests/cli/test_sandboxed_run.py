"""Commands of the model in the sandbox of this machine,
by the real program: what is told of what they may not do.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import HANGING, Desk, bash, events, serving, steps
from tests.cli.test_lost_server import wait_for
from tests.support.answers import Answer
from tests.support.sandbox_support import has_sandbox
from tests.workspace.sandbox.test_bounds import BOMB

pytestmark = pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here")


def nothing() -> None:
    """Nothing happens meanwhile."""


def run(
    desk: Desk, *commands: str, auto: bool = True, meanwhile: Callable[[], None] = nothing
) -> list[str]:
    """Have the model run commands; return what it was told.
    `meanwhile` happens once there is a file began.
    """
    calls = [bash(command, f"call_{number}") for number, command in enumerate(commands)]
    with serving(steps(*calls, Answer(text="Done."))) as server:
        desk.use(server, sandbox={"mode": "required", "network": "off"})
        with desk.start("run", *(["--auto"] if auto else []), "--format", "json", "go") as process:
            if meanwhile is not nothing:
                wait_for(desk.work / "began", process)
                meanwhile()
            stdout, stderr = process.communicate(timeout=HANGING)
    parts = [event["part"] for event in events(stdout) if event["type"] == "tool_use"]
    assert len(parts) == len(commands), stderr
    return [part["state"].get("output") or part["state"].get("error") for part in parts]


@pytest.mark.slow
def test_a_fork_bomb_and_a_memory_hog_are_ended_and_the_model_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits={"SANDBOX_PROCESSES": 320, "SANDBOX_MEMORY": 1})
    (desk.work / "bomb.py").write_text(BOMB)
    hog = "import time; x = b'x' * (1 << 30); time.sleep(20)"
    bomb, memory, after = run(
        desk, f"python3 {desk.work}/bomb.py", f'python3 -c "{hog}"', "echo goes on"
    )
    assert "it used more than 320 processes and threads, which is all that it may here" in bomb
    assert "MB of memory, which is all that it may here" in memory
    assert after == "goes on\n"
    assert subprocess.run(["pgrep", "-f", f"{desk.work}/bomb.py"], check=False).returncode


@pytest.mark.slow
def test_a_secret_file_is_written_when_that_was_allowed_and_stays_hidden_else(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    (desk.work / ".env").write_text("A=the-secret\n")
    (desk.work / "script.sh").write_text("cat .env; echo A=3 > .env")
    hidden, written, after = run(desk, "bash script.sh", "echo A=changed > .env", "bash script.sh")
    assert (desk.work / ".env").read_text() == "A=changed\n"
    assert "the-secret" not in hidden
    assert "(no output, exit code 0)" in written
    assert "changed" not in after
    for told in (hidden, after):
        assert "blocked: read of" in told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codeloop.json", ".opencode/agent/mine.md"])
@pytest.mark.parametrize("is_kept", [True, False])
def test_what_a_person_makes_meanwhile_is_kept_when_they_say_so_and_never_lost(
    tmp_path: Path, name: str, is_kept: bool
) -> None:
    desk = Desk(tmp_path)
    path = desk.work / name

    def make() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        (desk.work / "go").touch()

    command = "touch began; while [ ! -e go ]; do sleep 0.02; done"
    (told,) = run(desk, command, auto=is_kept, meanwhile=make)
    if is_kept:
        assert path.read_text() == "{}"
        assert (
            f"{name.partition('/')[0]} appeared while the command ran. The user let it stay."
            in told
        )
        return
    assert not path.exists()
    moved = Path(told.partition("It was moved to ")[2].partition(". ")[0])
    assert (moved / "agent/mine.md" if "/" in name else moved).read_text() == "{}"
    assert moved.is_relative_to(desk.home)
