"""An edit through `codeloop run` in a project that has a formatter: what it
changed is part of the edit.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.program import Desk, call, events, serving, steps
from tests.support.answers import Answer, Call
from tests.support.sandbox_support import has_sandbox

UGLY = "def f( a,b ):\n    return a+b\n\n\ndef g():\n    return 1\n"


def project(folder: Path, settings: str = "[tool.ruff]\n") -> Desk:
    desk = Desk(folder)
    (desk.work / "pyproject.toml").write_text(settings)
    (desk.work / "a.py").write_text("def f(a, b):\n    return a\n\n\ndef g():\n    return 1\n")
    programs = desk.work / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "ruff").symlink_to(
        shutil.which("ruff", path=str(Path(sys.executable).parent)) or ""
    )
    desk.git("init", "-q")
    desk.git("add", ".")
    desk.git("commit", "-qm", "start")
    return desk


@pytest.mark.slow
def test_what_a_formatter_changes_is_part_of_the_edit_and_of_its_undo(tmp_path: Path) -> None:
    desk = project(tmp_path)
    before = (desk.work / "a.py").read_text()
    more = Call(
        "edit",
        json.dumps({"filePath": "a.py", "oldString": "return 1", "newString": "return  2"}),
        "c2",
    )
    change = call(
        "edit",
        filePath="a.py",
        oldString="def f(a, b):\n    return a",
        newString="def f( a,b ):\n    return a+b",
    )
    with serving(steps(change, Answer(calls=(more,)), Answer(text="Done."))) as server:
        desk.use(server)
        assert desk.run("trust").returncode == 0
        done = desk.run("run", "--format", "json", "go")
    assert done.returncode == 0, done.stderr
    first, second = (
        event["part"]["state"] for event in events(done.stdout) if event["type"] == "tool_use"
    )
    assert first["output"] == "Edited a.py: line 2; ruff changed lines 1-2"
    assert "+def f(a, b):" not in first["metadata"]["diff"]
    assert "+    return a + b" in first["metadata"]["diff"]
    assert second["output"] == "Edited a.py: line 6; ruff changed line 6"
    assert (
        desk.work / "a.py"
    ).read_text() == "def f(a, b):\n    return a + b\n\n\ndef g():\n    return 2\n"
    assert desk.run("undo").returncode == 0
    assert (desk.work / "a.py").read_text() == before


def test_an_untrusted_project_has_no_formatter(tmp_path: Path) -> None:
    desk = project(tmp_path)
    with serving(
        steps(call("write", filePath="b.py", content=UGLY), Answer(text="Done."))
    ) as server:
        desk.use(server, formatter={"mine": {"command": ["touch", "run"], "extensions": [".py"]}})
        done = desk.run("run", "--format", "json", "go")
    assert done.returncode == 0, done.stderr
    assert (desk.work / "b.py").read_text() == UGLY
    assert not (desk.work / "run").exists()


@pytest.mark.slow
def test_one_of_the_person_s_own_formats_a_patch_in_the_sandbox_and_one_that_fails_is_named(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    failing = 'echo half > "$0"; echo no such style >&2; exit 3'
    script = 'echo gone > "$HOME/outside"; tr a-z A-Z < "$0" > t && cat t > "$0" && rm t'
    own = {
        "upper": {"command": ["sh", "-c", script, "$FILE"], "extensions": [".txt"]},
        "fails": {
            "command": ["sh", "-c", failing, "$FILE"],
            "extensions": [".md"],
        },
    }
    patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** Add File: b.md\n+two\n*** End Patch"
    with serving(steps(call("apply_patch", patchText=patch), Answer(text="Done."))) as server:
        desk.use(server, formatter=own)
        assert desk.run("trust").returncode == 0
        done = desk.run("run", "--format", "json", "go")
    (state,) = (
        event["part"]["state"] for event in events(done.stdout) if event["type"] == "tool_use"
    )
    assert (
        state["output"]
        == "A a.txt: 1 line; upper changed line 1\nA b.md: 1 line\nfails failed: no such style"
    )
    assert "+ONE" in state["metadata"]["diff"]
    assert ((desk.work / "a.txt").read_text(), (desk.work / "b.md").read_text()) == (
        "ONE\n",
        "two\n",
    )
    assert not has_sandbox() or not (tmp_path / "outside").exists()
    assert desk.run("undo").returncode == 0
    assert not (desk.work / "a.txt").exists()
