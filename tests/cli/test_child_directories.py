"""Programs that codeloop starts find in PWD the directory in which they run,
not the one where codeloop was started.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.extend.mcp.world import PLAIN
from tests.support.answers import Answer

NOTE = """
import os, pathlib, sys
with open(pathlib.Path(__file__).parent / f"{sys.argv[1]}.txt", "a") as file:
    print(os.getcwd(), os.environ.get("PWD"), file=file)
if sys.argv[2:]:
    os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.slow
def test_programs_of_a_session_find_their_directory_in_pwd(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "note.py").write_text(NOTE)
    (notes / "plain").mkdir()
    note = [sys.executable, str(notes / "note.py")]
    hook = {"matcher": "", "hooks": [{"type": "command", "command": shlex.join([*note, "hook"])}]}
    server = [*note, "mcp", sys.executable, str(PLAIN), str(notes / "plain")]
    settings: dict[str, Any] = {
        "hooks": {"PreToolUse": [hook]},
        "mcp": {"plain": {"type": "local", "command": server}},
        "formatter": {"mine": {"command": [*note, "formatter"], "extensions": [".xyz"]}},
        "lsp": {"mine": {"command": [*note, "lsp"], "extensions": [".xyz"]}},
        "sandbox": "off",
        "permission": {"*": "allow"},
    }
    program = shlex.join([*note, "command"])
    script = steps(
        call("plain_echo", call_id="c1", text="hi"),
        call("write", call_id="c2", filePath="a.xyz", content="a\n"),
        bash(f"mkdir sub; cd sub; {program}", "c3"),
        # The language server is started beside the turn.
        bash(
            f"{program}; until [ -s {shlex.quote(str(notes))}/lsp.txt ]; do sleep 0.05; done", "c4"
        ),
        Answer(text="Done."),
    )
    with serving(script) as model:
        desk.use(model, **settings)
        assert desk.run("trust", PWD=str(notes)).returncode == 0
        done = desk.run("run", "--format", "json", "do it", PWD=str(notes))
        assert result(done)["exitCode"] == 0
    assert {each.stem for each in notes.glob("*.txt")} == {
        "hook",
        "mcp",
        "formatter",
        "lsp",
        "command",
    }
    lines = [line.split() for each in notes.glob("*.txt") for line in each.read_text().splitlines()]
    assert {Path(folder).name for folder, _ in lines} >= {"work", "sub"}
    assert [(folder, given) for folder, given in lines if folder != os.path.realpath(given)] == []
