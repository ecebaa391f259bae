"""What single tools cost, as the difference of two whole runs that differ in the size of what the tool works on."""

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import script
from bench.figures import Bench
from bench.measure import Command, Failed
from bench.script import Call
from bench.subject import Place
from codeloop.permission.rules import decide
from codeloop.permission.shell.analyse import analyse, make_need
from codeloop.schema.permission import Action, PermissionRule
from codeloop.tool.builtin.shell.machine_facts import gather_facts
from codeloop.workspace.process.shells import ShellContext
from codeloop.workspace.workspace import Workspace

LINES = 100_000
FOLDERS, FILES_EACH = 500, 100
GIGABYTE = 1_000_000_000
DONE = "✓"
"""What a call that succeeded is shown with."""
LINE = "git log --oneline -20 -- src | head -5"
RULES: tuple[tuple[str, Action], ...] = (
    ("*", "ask"),
    ("<read-only>", "allow"),
    ("npm test *", "allow"),
    ("git push *", "deny"),
)
NEEDLE = "needle_in_a_large_tree"


def permission(bench: Bench) -> None:
    """Measure deciding a usual shell line in a repository: CPU, in this process."""
    folder = bench.folder / "permission"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    workspace = Workspace(folder, folder, bench.folder, dict(os.environ))
    place = ShellContext("ses_bench", folder, workspace.environment, workspace.scratch)
    rules = tuple(PermissionRule(permission="bash", pattern=pattern, action=action) for pattern, action in RULES)
    taken: list[float] = []
    for _ in range(max(bench.rounds, 3) * 100):
        start = time.process_time()
        analysis = analyse(LINE, gather_facts(LINE, folder, place, workspace))
        decide(make_need(LINE, analysis), rules)
        taken.append((time.process_time() - start) * 1000)
    for measured in bench.places:
        if measured.subject.name == "codeloop":
            bench.put(measured, "permission", statistics.median(taken))


def edit(bench: Bench) -> None:
    """Measure one edit in the middle of a large file over one in a small file; each run edits there and back."""
    for place in _scripted(bench):
        commands: dict[str, Command] = {}
        for name, lines in (("small", 100), ("large", LINES)):
            path = place.project / f"{name}.txt"
            path.write_text("".join(f"line {number} of a file\n" for number in range(lines)))
            there, back = f"line {lines // 2} of a file", f"line {lines // 2} of another"
            steps = [
                ("read", {"filePath": str(path), "limit": 1}),
                ("edit", {"filePath": str(path), "oldString": there + "\n", "newString": back + "\n"}),
                ("edit", {"filePath": str(path), "oldString": back + "\n", "newString": there + "\n"}),
            ]
            commands[name] = _command(bench, place, f"edit-{name}", *([step] for step in steps))
        found = bench.medians(commands)
        bench.put(place, "edit-large", (found["large"].wall - found["small"].wall) / 2)


def search(bench: Bench) -> None:
    """Measure grep and glob over a tree of 50,000 files against ripgrep itself, both over the same on a small tree."""
    rg = shutil.which("rg", path=str(Path(sys.executable).parent)) or shutil.which("rg")
    if rg is None:
        raise Failed("there is no rg to compare with; `make venv` installs one")
    for place in _scripted(bench):
        small, large = _tree(place.home / "small", 1), _tree(place.home / "large", FOLDERS)
        commands: dict[str, Command] = {}
        for size, tree in (("small", small), ("large", large)):
            grep: Call = ("grep", {"pattern": NEEDLE, "path": str(tree)})
            glob: Call = ("glob", {"pattern": "**/file_7*.py", "path": str(tree)})
            commands[f"grep {size}"] = _command(bench, place, f"grep-{size}", [grep])
            commands[f"glob {size}"] = _command(bench, place, f"glob-{size}", [glob])
            commands[f"rg grep {size}"] = place.fill((rg, "--line-number", "--hidden", NEEDLE, str(tree)))
            listing = (rg, "--files", "--hidden", "--sortr", "modified", "--glob", "**/file_7*.py", str(tree))
            commands[f"rg glob {size}"] = place.fill(listing)
        found = bench.medians(commands)
        for tool in ("grep", "glob"):
            ours = found[f"{tool} large"].wall - found[f"{tool} small"].wall
            plain = found[f"rg {tool} large"].wall - found[f"rg {tool} small"].wall
            bench.put(place, f"{tool}-large", ours / plain)


def shell(bench: Bench) -> None:
    """Measure the memory that a command with 1 GB of output takes over one with a line."""
    for place in _scripted(bench):
        commands = {
            str(size): _command(
                bench, place, f"bash-{size}", [("bash", {"command": f"yes | head -c {size}", "description": "writes"})]
            )
            for size in (10, GIGABYTE)
        }
        found = bench.medians(commands)
        bench.put(place, "bash-memory", found[str(GIGABYTE)].memory - found["10"].memory)


def _scripted(bench: Bench) -> list[Place]:
    return [place for place in bench.places if place.subject.scripted]


def _command(bench: Bench, place: Place, name: str, *steps: Sequence[Call]) -> Command:
    """Return the command whose model makes the calls. Raises Failed when one of them does not succeed."""
    path = script.write(bench.folder / f"{place.subject.name}-{name}.jsonl", *steps)
    command = place.fill(place.subject.scripted, script=path)
    shown = subprocess.run(
        command.argv,
        cwd=command.cwd,
        env=dict(command.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    text = (shown.stdout + shown.stderr).decode(errors="replace")
    if text.count(DONE) < sum(map(len, steps)):
        raise Failed(f"a call of {name} did not succeed:\n{text[-2000:]}")
    return command


def _tree(top: Path, folders: int) -> Path:
    """Make `folders` folders of 100 small files each; one file in each folder holds the needle."""
    text = "def add(a, b):\n    return a + b\n\n\n" * 10
    for folder in range(folders):
        inside = top / f"package_{folder % 20}" / f"module_{folder}"
        inside.mkdir(parents=True)
        for number in range(FILES_EACH):
            (inside / f"file_{number}.py").write_text(text + (f"{NEEDLE} = 1\n" if number == 50 else ""))
    return top
