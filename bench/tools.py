"""Measures single tools by the difference of two whole runs: one works on much,
the other on little.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.bench_run import BenchRun
from bench.process_runner import Command, MeasurementFailed
from bench.replay_script import ScriptedCall, write_replay_script
from bench.subjects import Installation

LINE_COUNT = 100_000
FOLDERS, FILES_EACH = 500, 100
GIGABYTE_BYTES = 1_000_000_000
SUCCESS_MARK = "✓"
"""`codeloop run` prints it before a call that succeeded."""
NEEDLE = "needle_in_a_large_tree"


def measure_edit(bench: BenchRun) -> None:
    """Measure an edit in the middle of a large file, over one in a small file.

    Each run edits there and back, so that the next run finds the file as it was: hence the half.
    """
    for installation in bench.scriptable:
        commands: dict[str, Command] = {}
        for name, lines in (("small", 100), ("large", LINE_COUNT)):
            path = installation.project / f"{name}.txt"
            path.write_text("".join(f"line {number} of a file\n" for number in range(lines)))
            there, back = f"line {lines // 2} of a file", f"line {lines // 2} of another"
            steps = [
                ("read", {"filePath": str(path), "limit": 1}),
                (
                    "edit",
                    {"filePath": str(path), "oldString": there + "\n", "newString": back + "\n"},
                ),
                (
                    "edit",
                    {"filePath": str(path), "oldString": back + "\n", "newString": there + "\n"},
                ),
            ]
            commands[name] = _make_command(
                bench, installation, f"edit-{name}", *([step] for step in steps)
            )
        medians = bench.measure_medians(commands)
        bench.put(installation, "edit-large", (medians["large"].wall - medians["small"].wall) / 2)


def measure_search(bench: BenchRun) -> None:
    """Measure grep and glob on a tree of 50,000 files against plain ripgrep;
    the same on a small tree is subtracted.
    """
    rg = shutil.which("rg", path=str(Path(sys.executable).parent)) or shutil.which("rg")
    if rg is None:
        raise MeasurementFailed("there is no rg to compare with; `make venv` installs one")
    for installation in bench.scriptable:
        small, large = (
            _make_tree(installation.home / "small", 1),
            _make_tree(installation.home / "large", FOLDERS),
        )
        commands: dict[str, Command] = {}
        for size, tree in (("small", small), ("large", large)):
            grep: ScriptedCall = ("grep", {"pattern": NEEDLE, "path": str(tree)})
            glob: ScriptedCall = ("glob", {"pattern": "**/file_7*.py", "path": str(tree)})
            commands[f"grep {size}"] = _make_command(bench, installation, f"grep-{size}", [grep])
            commands[f"glob {size}"] = _make_command(bench, installation, f"glob-{size}", [glob])
            commands[f"rg grep {size}"] = installation.fill(
                (rg, "--line-number", "--hidden", NEEDLE, str(tree))
            )
            listing = (
                rg,
                "--files",
                "--hidden",
                "--sortr",
                "modified",
                "--glob",
                "**/file_7*.py",
                str(tree),
            )
            commands[f"rg glob {size}"] = installation.fill(listing)
        medians = bench.measure_medians(commands)
        for tool in ("grep", "glob"):
            ours = medians[f"{tool} large"].wall - medians[f"{tool} small"].wall
            plain = medians[f"rg {tool} large"].wall - medians[f"rg {tool} small"].wall
            bench.put(installation, f"{tool}-large", ours / plain)


def measure_shell(bench: BenchRun) -> None:
    """Measure the memory of a command with 1 GB of output, over that of one with a few bytes."""
    for installation in bench.scriptable:
        commands = {
            str(size): _make_command(
                bench,
                installation,
                f"bash-{size}",
                [("bash", {"command": f"yes | head -c {size}", "description": "writes"})],
            )
            for size in (10, GIGABYTE_BYTES)
        }
        medians = bench.measure_medians(commands)
        bench.put(
            installation, "bash-memory", medians[str(GIGABYTE_BYTES)].memory - medians["10"].memory
        )


def _make_command(
    bench: BenchRun, installation: Installation, name: str, *steps: Sequence[ScriptedCall]
) -> Command:
    """Return the command of a run whose model makes these calls.
    It is run once: MeasurementFailed if a call fails.
    """
    path = write_replay_script(bench.folder / f"{installation.subject.name}-{name}.jsonl", *steps)
    command = installation.fill(installation.subject.scripted, script=path)
    shown = subprocess.run(
        command.argv,
        cwd=command.cwd,
        env=dict(command.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    text = (shown.stdout + shown.stderr).decode(errors="replace")
    if text.count(SUCCESS_MARK) < sum(map(len, steps)):
        raise MeasurementFailed(f"a call of {name} did not succeed:\n{text[-2000:]}")
    return command


def _make_tree(top: Path, folders: int) -> Path:
    """Make folders of 100 small files each, one of which contains the needle; return `top`."""
    text = "def add(a, b):\n    return a + b\n\n\n" * 10
    for folder in range(folders):
        inside = top / f"package_{folder % 20}" / f"module_{folder}"
        inside.mkdir(parents=True)
        for number in range(FILES_EACH):
            (inside / f"file_{number}.py").write_text(
                text + (f"{NEEDLE} = 1\n" if number == 50 else "")
            )
    return top
