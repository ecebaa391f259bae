"""Every place that starts a program is named, with who decides, in the decision about the gate."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "codeloop"
AUTOMATION = ROOT / "automation" / "src"
PAGE = ROOT / "docs" / "decisions" / "0017-one-gate-decides.md"
STARTS = {
    *(
        "subprocess.run",
        "subprocess.Popen",
        "subprocess.call",
        "subprocess.check_output",
        "subprocess.check_call",
    ),
    *(
        "asyncio.create_subprocess_exec",
        "asyncio.create_subprocess_shell",
        "run_program",
        "ChildProcess",
    ),
    *(
        "make_desktop_launch",
        "Launch",
        "create_subprocess_exec",
        "create_subprocess_shell",
        "Popen",
        "spawn",
    ),
    *(
        "os.system",
        "os.popen",
        "os.posix_spawn",
        "os.posix_spawnp",
        "os.fork",
        "os.forkpty",
        "pty.fork",
        "pty.spawn",
    ),
}


ROW = re.compile(r"^\| .*`.* \|$", re.MULTILINE)


def starts(file: Path) -> bool:
    names = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    }
    return bool(names & STARTS) or any(re.fullmatch(r"os\.(exec|spawn)\w+", name) for name in names)


@pytest.mark.slow
def test_who_decides_is_written_down_for_each_place_that_starts_a_program() -> None:
    programs = PAGE.read_text(encoding="utf-8").partition("## Programs")[2]
    rows = [
        place
        for row in ROW.findall(programs)
        for place in re.findall(r"`([a-z0-9_/.]+/[a-z0-9_.]*)`", row)
    ]
    found = {
        file.relative_to(base).as_posix()
        for base in (SRC, AUTOMATION)
        for file in base.rglob("*.py")
        if starts(file)
    }
    unnamed = {
        each
        for each in found
        if not any(each == row or each.startswith(row) for row in rows if row)
    }
    assert unnamed == set(), f"say in {PAGE.name} who decides"
    assert "config/project_root.py" in found


def test_each_place_says_where_with_what_and_in_which_sandbox_it_starts_programs() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8").partition("## Programs")[2])
    assert len(rows) > 15
    assert [
        row
        for row in rows
        if len([cell for cell in row.strip("|").split(" | ") if cell.strip()]) != 6
    ] == []


def test_the_places_of_the_page_are_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    places = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?)`", text)
    assert len(places) > 15
    bases = (SRC, AUTOMATION, ROOT)
    assert [each for each in places if not any((base / each).exists() for base in bases)] == []
