"""What `tool_output` of the configuration does to what a model reads, and where paths start,
in the real program.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.support.answers import Answer


def run_calls(desk: Desk, *calls: Answer, **settings: Any) -> list[str]:
    """Return what a model is told of its calls, one a step."""
    with serving(steps(*calls, Answer(text="Done."))) as server:
        desk.use(server, **settings)
        assert result(desk.run("run", "--format", "json", "do it"))["exitCode"] == 0
        return [
            str(m["content"]) for m in server.requests[-1].json["messages"] if m["role"] == "tool"
        ]


LINES = "".join(f"line {number} {'x' * 88}\n" for number in range(700))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, (30_000, 51_000)),
        ({"max_bytes": 100_000}, (70_000, 78_000)),
        ({"max_bytes": 5_000}, (5_000, 5_600)),
        ({"max_lines": 50}, (5_100, 5_600)),
    ],
)
def test_every_tool_keeps_to_the_configured_bounds(
    tmp_path: Path, settings: dict[str, int], shown: tuple[int, int]
) -> None:
    desk = Desk(tmp_path)
    (desk.work / "long.txt").write_text(LINES)
    calls = (bash("cat long.txt", "c1"), call("read", call_id="c2", filePath="long.txt"))
    told = run_calls(desk, *calls, tool_output=settings)
    for text, size in zip(told, shown, strict=True):
        assert size * 0.8 < len(text) <= size + 400, text[-300:]


@pytest.mark.slow
def test_paths_start_in_one_folder_whatever_cd_did(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "sub").mkdir()
    (desk.work / "a.py").write_text("A = 1\n")
    calls = (
        bash("cd sub", "c1"),
        call("write", call_id="c2", filePath="fresh.txt", content="x"),
        call("read", call_id="c3", filePath="../a.py"),
        call("bash", call_id="c4", command="pwd", workdir="sub"),
        bash("pwd", "c5"),
        call("edit", call_id="c6", filePath="../a.py", oldString="A", newString="B"),
        call("write", call_id="c7", filePath="../b.py", content="x"),
        call(
            "apply_patch",
            call_id="c8",
            patchText="*** Begin Patch\n*** Add File: ../b.py\n+x\n*** End Patch",
        ),
        call("bash", call_id="c9", command="pwd", workdir=".."),
    )
    told = run_calls(desk, *calls, permission={"edit": "allow"})
    assert (
        "The working directory is now sub.\nThat of commands: paths given to other tools" in told[0]
    )
    assert (desk.work / "fresh.txt").exists()
    for index, meant in ((2, "a.py"), (5, "a.py"), (6, "b.py"), (7, "b.py"), (8, ".")):
        assert "Paths start in" in told[index], index
        assert f"{desk.work / 'sub'} that is {meant}: give this" in told[index], index
    assert told[3].strip() == told[4].strip() == str(desk.work / "sub")
