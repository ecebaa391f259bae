"""A tool that is denied by its name, by the real program, wherever the denial is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, last_work, serving, steps
from tests.support.answers import Answer, Call

WRITE = {"filePath": "made.txt", "content": "x"}
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("write", WRITE),
    ("write_file", WRITE),
    ("multiedit", {"filePath": "made.txt", "edits": [{"oldString": "", "newString": "x"}]}),
    ("apply_patch", {"patchText": "*** Begin Patch\n*** Add File: made.txt\n+x\n*** End Patch"}),
    ("bash", {"command": "echo x > made.txt", "description": "Writes"}),
)
ANSWER = Answer(
    calls=tuple(
        Call(name, json.dumps(given), f"call_{at}") for at, (name, given) in enumerate(CALLS)
    )
)
RULES = [
    {"action": "*", "resource": "*", "effect": "allow"},
    {"action": "patch", "resource": "*", "effect": "deny"},
]
HEAD = "---\ndescription: Reads\nmode: primary\ntools:\n  multiedit: false\n---\nRead.\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "head"),
    [
        ({"permission": {"*": "allow", "write": "deny"}}, ""),
        ({"permissions": RULES}, ""),
        ({"tools": {"write": False}}, ""),
        ({"agent": {"x": {"mode": "primary", "tools": {"apply_patch": False}}}}, ""),
        ({"agent": {"x": {"mode": "primary", "permissions": RULES}}}, ""),
        ({}, HEAD),
    ],
)
def test_no_file_is_changed_where_a_tool_that_changes_files_is_denied(
    tmp_path: Path, settings: dict[str, Any], head: str
) -> None:
    desk = Desk(tmp_path)
    with serving(steps(ANSWER, Answer(text="Done."))) as server:
        desk.use(server, "openai", **settings)
        if head:
            (desk.home / "config" / "agent").mkdir()
            (desk.home / "config" / "agent" / "x.md").write_text(head)
        agent = ["--agent", "x"] if head or "agent" in settings else []
        assert desk.run("run", "--auto", *agent, "go").returncode == 0
        request = last_work(server).json
        results = [each["content"] for each in request["messages"] if each["role"] == "tool"]
        assert len(results) == len(CALLS)
        assert all("Permission denied by the rule" in each for each in results), results
        assert not (desk.work / "made.txt").exists()
        assert not {"write", "edit", "multiedit", "apply_patch"} & {
            each["function"]["name"] for each in request["tools"]
        }
