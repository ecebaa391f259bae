"""An edit through `codeloop run` in a project that has a formatter: what it changed is part of the edit."""

import json
import shutil
import sys
from pathlib import Path

from tests.cli.program import Desk, call, events, serving, steps
from tests.support.answers import Answer, Call

UGLY = "def f( a,b ):\n    return a+b\n\n\ndef g():\n    return 1\n"


def project(folder: Path, settings: str = "[tool.ruff]\n") -> Desk:
    desk = Desk(folder)
    (desk.work / "pyproject.toml").write_text(settings)
    (desk.work / "a.py").write_text("def f(a, b):\n    return a\n\n\ndef g():\n    return 1\n")
    programs = desk.work / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "ruff").symlink_to(shutil.which("ruff", path=str(Path(sys.executable).parent)) or "")
    desk.git("init", "-q")
    desk.git("add", ".")
    desk.git("commit", "-qm", "start")
    return desk


def test_what_a_formatter_changes_is_part_of_the_edit_and_of_its_undo(tmp_path: Path) -> None:
    desk = project(tmp_path)
    before = (desk.work / "a.py").read_text()
    more = Call("edit", json.dumps({"filePath": "a.py", "oldString": "return 1", "newString": "return  2"}), "c2")
    change = call(
        "edit", filePath="a.py", oldString="def f(a, b):\n    return a", newString="def f( a,b ):\n    return a+b"
    )
    with serving(steps(change, Answer(calls=(more,)), Answer(text="Done."))) as server:
        desk.use(server)
        assert desk.run("trust").returncode == 0
        done = desk.run("run", "--format", "json", "go")
    assert done.returncode == 0, done.stderr
    first, second = (event["part"]["state"] for event in events(done.stdout) if event["type"] == "tool_use")
    assert first["output"] == "Edited a.py: line 2; ruff changed lines 1-2"
    assert "+def f(a, b):" not in first["metadata"]["diff"]
    assert "+    return a + b" in first["metadata"]["diff"]
    assert second["output"] == "Edited a.py: line 6; ruff changed line 6"
    assert (desk.work / "a.py").read_text() == "def f(a, b):\n    return a + b\n\n\ndef g():\n    return 2\n"
    assert desk.run("undo").returncode == 0
    assert (desk.work / "a.py").read_text() == before


def test_an_untrusted_project_has_no_formatter(tmp_path: Path) -> None:
    desk = project(tmp_path)
    with serving(steps(call("write", filePath="b.py", content=UGLY), Answer(text="Done."))) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "go")
    assert done.returncode == 0, done.stderr
    assert (desk.work / "b.py").read_text() == UGLY
