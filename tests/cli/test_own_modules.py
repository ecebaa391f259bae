"""What a project has on PYTHONPATH is for its own programs: codeloop runs the same with it."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Desk, last_work, serving, steps
from tests.support.answers import Answer, Call


@pytest.mark.slow
def test_modules_of_the_project_do_not_stand_in_for_codeloop_s(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.git("init", "-q")
    for name in ("json", "asyncio", "click", "msgspec", "sqlite3", "typing"):
        (desk.work / f"{name}.py").write_text("raise SystemExit('of the project')\n")
    call = Call("bash", json.dumps({"command": 'echo "$PYTHONPATH"'}))
    with serving(steps(Answer(calls=(call,)), Answer(text="done"))) as server:
        desk.use(server)
        options = desk.options(PYTHONPATH=str(desk.work))
        command = [*desk.command, "run", "--auto", "go"]
        done = subprocess.run(
            command, **options, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr.decode()
        result = last_work(server).json["messages"][-1]["content"]
    assert result == f"{desk.work}\n"
