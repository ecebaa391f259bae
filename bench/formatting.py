"""Measures the time that a formatter adds to an edit."""

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

from bench.bench_run import BenchRun
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.format.formatters import Formatters
from codeloop.workspace.format.run_formatters import format_files
from codeloop.workspace.workspace import Workspace

PYTHON_SOURCE = "def double(x: int) -> int:\n    return x*2\n\n\n" * 300
EDIT_COUNT = 12
TIMEOUT_SECONDS = 5
PROGRAMS = Path(sys.executable).parent


def measure_formatted_edits(bench: BenchRun) -> None:
    """Measure ruff in the sandbox, on a file of 1,200 lines.
    Nothing is measured if this Python has no ruff.
    """
    if (PROGRAMS / "ruff").exists():
        times = asyncio.run(_time_formatting(bench.folder / "formatted"))
        # The first edit makes the sandbox.
        bench.put_own("edit-formatted-first", times[0])
        bench.put_own("edit-formatted", statistics.median(times[1:]))


async def _time_formatting(folder: Path) -> list[float]:
    """Return the time of formatting after each of several edits, ms.
    Raises OSError when ruff has not formatted.
    """
    root = folder / "work"
    (folder / "scratch").mkdir(parents=True)
    root.mkdir()
    # Only a project with a configuration of ruff is formatted by it.
    (root / "ruff.toml").touch()
    path = os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))
    environment = {"PATH": path, "HOME": os.environ.get("HOME", "/")}
    workspace = Workspace(root, root, folder / "scratch", environment, SandboxConfig())
    formatters, file, times = Formatters(workspace, None), root / "a.py", list[float]()
    for number in range(EDIT_COUNT):
        file.write_text(f"{PYTHON_SOURCE}x={number}\n")
        began = time.monotonic()
        file_formatters = formatters.find_formatters(file)
        (result,) = (
            await format_files(workspace, {file: file_formatters}, TIMEOUT_SECONDS)
        ).values()
        times.append((time.monotonic() - began) * 1000)
        if result.changed_by != ("ruff",):
            raise OSError(f"ruff did not format: {result.problems}")
    await workspace.shells.close()
    return times
