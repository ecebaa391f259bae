"""Every tool's results as a model reads them: one golden file a tool in `results/`,
made by the real tools.

To renew them after a change of what models read:
`CODELOOP_GOLDEN=write .venv/bin/pytest -n 0 tests/tool/test_results.py`.
Then read the diff as a model would.
"""

import base64
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.tool.context import TestContext
from tests.tool.small_project import BOX, answer, small_project

RESULTS = Path(__file__).with_name("results")
WRITING = os.environ.get("CODELOOP_GOLDEN") == "write"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PATCH = """*** Begin Patch
*** Add File: src/new.py
+A = 1
+B = 2
*** Update File: src/config.py
@@
-DEBUG = False
+DEBUG = True
*** Update File: src/helpers/text.py
*** Move to: src/text.py
@@
-def shout(text):
+def loud(text):
*** Delete File: README.md
*** End Patch"""

CALLS: dict[str, list[dict[str, Any]]] = {
    "read": [
        {"filePath": "src/config.py"},
        {"filePath": "src/app.py", "offset": 5, "limit": 4},
        {"filePath": "long.txt"},
        {"filePath": "wide.txt"},
        {"filePath": "src"},
        {"filePath": "empty.txt"},
        {"filePath": "pixel.png"},
        {"filePath": "docs/guide.md"},
        {"filePath": "program.bin"},
        {"filePath": "src/confg.py"},
        {"filePath": "src/config.py", "offset": 40},
        {"filePath": "src/app.py", "symbol": "f7"},
        {"filePath": "src/app.py", "symbol": "f71"},
        {"filePath": ".", "symbol": "*"},
        {"filePath": "src/app.py", "symbol": "f2*"},
        {"filePath": "src", "symbol": "Rule.*"},
        {"filePath": "src/config.py", "symbol": "*"},
    ],
    "edit": [
        {
            "filePath": "src/config.py",
            "oldString": "DEBUG = False",
            "newString": "DEBUG = True\nLEVEL = 3",
        },
        {
            "filePath": "src/app.py",
            "oldString": "    return 1",
            "newString": "    return 0",
            "replaceAll": True,
        },
        {"filePath": "src/new.py", "oldString": "", "newString": "A = 1\n"},
        {"filePath": "src/app.py", "oldString": "def f3():\n    return 3\n\n\n", "newString": ""},
        {"filePath": "src/app.py", "oldString": "return 4", "newString": "return 40"},
        {"filePath": "src/config.py", "oldString": "LEVL = 3", "newString": "LEVEL = 4"},
        {"filePath": "src/app.py", "oldString": "    return", "newString": "    yield"},
    ],
    "multiedit": [
        {
            "filePath": "src/config.py",
            "edits": [
                {"oldString": "app", "newString": "App"},
                {"oldString": "False", "newString": "True"},
            ],
        },
        {"filePath": "src/config.py", "edits": [{"oldString": "nothing", "newString": "x"}]},
    ],
    "write": [
        {"filePath": "src/new.py", "content": "A = 1\nB = 2\n"},
        {"filePath": "src/new.py", "content": "A = 1\nB = 3\n"},
        {"filePath": "src/new.py", "content": "A = 1\nB = 3\n"},
        {"filePath": "src/new.py", "content": ""},
        {"filePath": "src/config.py", "content": "x"},
    ],
    "apply_patch": [
        {"patchText": PATCH},
        {"patchText": PATCH},
        {
            "patchText": "*** Begin Patch\n*** Update File: src/config.py\n@@\n-DEBUG = Treu\n+x\n*** End Patch"
        },
        {"patchText": "DEBUG = 1"},
    ],
    "grep": [
        {"pattern": "return 1"},
        {"pattern": "^def f[15]\\(", "context": 1, "path": "src/app.py"},
        {"pattern": "DEBUG", "mode": "files"},
        {"pattern": "return", "path": "src/app.py", "mode": "count"},
        {"pattern": "DEBUG|shout", "include": "src/**/*.py", "after": 1},
        {"pattern": "f3\\(\\):\n    return", "multiline": True, "before": 1},
        {"pattern": "return", "mode": "count"},
        {"pattern": "nowhere", "mode": "files"},
        {"pattern": "nowhere"},
        {"pattern": "line", "path": "long.txt"},
        {"pattern": "def f1("},
        {"pattern": "debug\\|shuot", "ignoreCase": True},
        {"pattern": "x", "path": "scr"},
        {"pattern": "return [23]$|upper", "block": True},
    ],
    "glob": [
        {"pattern": "**/config.py"},
        {"pattern": "src/helpers"},
        {"pattern": "src/**/*.{py,md}", "path": "src"},
        {"pattern": "*.rs"},
        {"pattern": "many/*.txt"},
        {"pattern": "*", "path": "README.md"},
    ],
    "list": [
        {"path": "src"},
        {},
        {"path": "large"},
        {"path": "hollow"},
        {"path": "src", "ignore": ["*.py"]},
        {"path": "srcc"},
    ],
    "bash": [
        {"command": "echo out; echo err >&2; printf '\\033[31mred\\033[0m\\n'"},
        {"command": "true"},
        {"command": "echo no; exit 3"},
        {"command": "for i in 1 2 3 4 5 6 7; do echo waiting; done; echo done"},
        {"command": "printf ' 10%%\\r 50%%\\r100%%\\n'; echo done"},
        {"command": "printf 'a 1%%\\nb 1%%\\n\\033[2Aa done\\nb done\\n'"},
        {"command": 'for n in 1 2 3 4 5 6; do echo "....s.... [ ${n}0%]"; done; echo 60 passed'},
        {"command": "seq 1 20000"},
        {"command": "echo begun; sleep 600", "timeout": 1000, "until": "begun"},
        {"command": "cd src && export NAME=app"},
        {"command": "ls; echo $NAME"},
        {"command": "pwd", "reset": True},
        {"command": "sleep 30 & echo started"},
        {"command": "sleep 30", "run_in_background": True},
        {"command": "sh -c 'kill -9 $$'"},
        {"command": "nosuchprogram --help"},
        {"command": "ls", "workdir": "scr"},
    ],
    "bash_output": [
        {"id": "bash_7"},
        {
            "first": ("bash", {"command": "echo ready; sleep 600", "run_in_background": True}),
            "id": "bash_1",
            "wait": 20000,
        },
        {"id": "bash_1"},
        {"first": ("bash_kill", {"id": "bash_1"}), "id": "bash_1"},
        {
            "first": ("bash", {"command": "exit 3", "run_in_background": True}),
            "id": "bash_2",
            "wait": 20000,
        },
        {"id": "bash_7"},
    ],
    "bash_kill": [
        {"id": "bash_7"},
        {"first": ("bash", {"command": "sleep 600", "run_in_background": True}), "id": "bash_1"},
        {"id": "bash_1"},
        {"id": "bash_7"},
    ],
    "todowrite": [
        {
            "todos": [
                {"content": "Fix it", "status": "in_progress"},
                {"content": "Test it", "status": "pending"},
            ]
        },
        {"todos": [{"content": "Fix it", "status": "completed"}]},
        {"todos": []},
        {"todos": [{"content": " ", "status": "pending"}]},
    ],
    "todoread": [
        {},
        {
            "first": (
                "todowrite",
                {
                    "todos": [
                        {"content": "Fix it", "status": "in_progress"},
                        {"content": "Test", "status": "pending"},
                    ]
                },
            )
        },
    ],
    "batch": [
        {
            "tool_calls": [
                {"tool": "read", "parameters": {"filePath": "src/config.py"}},
                {"tool": "nope", "parameters": {}},
            ]
        },
        {
            "tool_calls": [
                {"name": "Read", "arguments": {"file_path": "README.md"}},
                {"tool": "glob", "parameters": {}},
            ]
        },
        {"tool_calls": []},
    ],
}
"""Calls of a tool, in order, in one project. `first`: another call, made first.

`until`: the call is made again until its result has this text,
as a busy machine may begin nothing before a timeout.
"""
ANSWERED = {
    "question",
    "plan_exit",
    "task",
    "task_output",
    "websearch",
    "codesearch",
    "webfetch",
    "skill",
    "lsp",
}
"""A person, a subagent, a server or a file answers these: `test_session_results.py`,
`tests/lsp/test_tool.py`.
"""


def project(tmp_path: Path) -> TestContext:
    ctx = small_project(tmp_path)
    root = ctx.workspace.root
    (root / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 2501)))
    (root / "wide.txt").write_text(("w" * 999 + "\n") * 60)
    (root / "empty.txt").touch()
    (root / "pixel.png").write_bytes(PNG)
    (root / "program.bin").write_bytes(b"\x7fELF\0\0\1")
    for folder in ("hollow", "many", "docs", "large/deep", "large/below"):
        (root / folder).mkdir(parents=True)
    for number in range(150):
        (root / "large" / "deep" / f"{number}.txt").touch()
        (root / "large" / "below" / f"{number}.txt").touch()
    (root / "docs" / "AGENTS.md").write_text("Write plain sentences.\n")
    (root / "docs" / "guide.md").write_text("# Guide\n")
    for number in range(110):
        file = root / "many" / f"{number:03}.txt"
        file.write_text("x\n")
    for at, file in enumerate(sorted(root.rglob("*"))):
        os.utime(file, (1_000_000 + at, 1_000_000 + at))
    return ctx


def settled(text: str, tmp_path: Path) -> str:
    """Return the text without what differs from run to run: the folder, names of saved outputs;
    long ones in short.
    """
    text = re.sub(rf"{re.escape(str(tmp_path))}/scratch/[\w.-]+", "/scratch/OUTPUT", text)
    text = re.sub(r"\btool_[0-9a-f]{8}\b", "tool_OUTPUT", text)
    text = re.sub(r"line 1: +\d+ Killed +", "line 1: PID Killed ", text)
    text = re.sub(
        r"running for \d+ s", "running for N s", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    )
    lines = text.replace(str(tmp_path), "/tmp").split("\n")
    lines = [line if len(line) <= 300 else f"{line[:60]}<{len(line)} characters>" for line in lines]
    notes = [line for line in lines[12:-8] if "OUTPUT" in line]
    return "\n".join(
        [*lines[:12], f"<{len(lines) - 20} lines>", *notes, *lines[-8:]]
        if len(lines) > 24
        else lines
    )


def piece(tool: str, given: dict[str, Any], text: str, tmp_path: Path, *, done: bool) -> str:
    """Return a call and what a model reads of it, as a golden file has them."""
    asked = ", ".join(f"{key}={str(value)[:160]!r}" for key, value in given.items())
    return f"==== {tool}({asked}){'' if done else ' FAILS'}\n{settled(text, tmp_path)}\n"


def compare(tool: str, pieces: list[str]) -> None:
    """Fail unless the tool's golden file holds exactly these."""
    found = "\n".join(pieces)
    golden = RESULTS / f"{tool}.txt"
    if WRITING:
        golden.write_text(found)
    assert found == golden.read_text()


@pytest.mark.parametrize("tool", CALLS)
async def test_a_model_reads_exactly_this(tmp_path: Path, tool: str) -> None:
    ctx = project(tmp_path)
    pieces: list[str] = []
    for entry in CALLS[tool]:
        given = {name: value for name, value in entry.items() if name not in {"first", "until"}}
        if "first" in entry:
            await answer(ctx, *entry["first"])
        text, done = await answer(ctx, tool, given)
        for _ in range(30):
            if entry.get("until", "") in text:
                break
            text, done = await answer(ctx, tool, given)
        pieces.append(piece(tool, given, text, tmp_path, done=done))
    compare(tool, pieces)


def test_every_tool_has_its_golden_file() -> None:
    tools = set(BOX.tools_by_name) | {"websearch", "codesearch", "skill"}
    assert tools == set(CALLS) | ANSWERED == {file.stem for file in RESULTS.glob("*.txt")}
