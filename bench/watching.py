"""What a formatter adds to an edit, and what it costs to watch a large work tree, and then to wait."""

import asyncio
import os
import statistics
import sys
import time
from itertools import count
from pathlib import Path

from bench.figures import Bench
from codeloop.schema.config import SandboxConfig
from codeloop.workspace.format.formatters import Formatters
from codeloop.workspace.format.run_formatters import format_files
from codeloop.workspace.watch.ignored_files import IgnoredFiles
from codeloop.workspace.watch.tree_watch import TreeWatch
from codeloop.workspace.workspace import Workspace

PYTHON = "def double(x: int) -> int:\n    return x*2\n\n\n" * 300
EDITS = 12
FOLDERS, FILES_EACH = 10_000, 20
IDLE = 5  # seconds
OPEN_FILES = Path("/proc/sys/fs/inotify/max_user_watches")


def formatted(bench: Bench) -> None:
    """Measure ruff on a file of 1,200 lines in the sandbox: all that an edit waits for. It is beside this Python."""
    if (Path(sys.executable).parent / "ruff").exists():
        taken = asyncio.run(_formatted(bench.folder / "formatted"))
        _put(bench, "edit-formatted-first", taken[0])
        _put(bench, "edit-formatted", statistics.median(taken[1:]))


def watched(bench: Bench) -> None:
    """Measure the processor while 200,000 files begin to be watched, the longest time in which nothing else went on,
    and the processor while nothing changes."""
    if not OPEN_FILES.exists() or int(OPEN_FILES.read_text(encoding="ascii")) < 2 * FOLDERS:
        return
    root = bench.folder / "watched"
    for folder in range(FOLDERS):
        inside = root / f"d{folder % 100}" / f"e{folder}"
        inside.mkdir(parents=True)
        for number in range(FILES_EACH):
            (inside / f"file_{number}.py").touch()
    cpu, stall, idle = asyncio.run(_watched(root))
    _put(bench, "watch-large-cpu", cpu)
    _put(bench, "watch-large-stall", stall)
    _put(bench, "watch-idle", idle)


def _put(bench: Bench, name: str, value: float) -> None:
    for measured in bench.places:
        if measured.subject.name == "codeloop":
            bench.put(measured, name, value)


async def _formatted(folder: Path) -> list[float]:
    root = folder / "work"
    (folder / "scratch").mkdir(parents=True)
    root.mkdir()
    (root / "ruff.toml").touch()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {"PATH": path, "HOME": os.environ.get("HOME", "/")}
    workspace = Workspace(root, root, folder / "scratch", environment, SandboxConfig())
    formatters, file, taken = Formatters(workspace, None), root / "a.py", list[float]()
    for number in range(EDITS):
        file.write_text(f"{PYTHON}x={number}\n")
        began = time.monotonic()
        (done,) = (await format_files(workspace, {file: formatters.find_formatters(file)}, 5)).values()
        taken.append((time.monotonic() - began) * 1000)
        if done.by != ("ruff",):
            raise OSError(f"ruff did not format: {done.problems}")
    await workspace.shells.close()
    return taken


async def _watched(root: Path) -> tuple[float, float, float]:
    tree = TreeWatch(root, None, IgnoredFiles(root, None, [], {}))
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        for _ in count():
            began = time.monotonic()
            await asyncio.sleep(0.001)
            longest = max(longest, time.monotonic() - began)

    beating, used = asyncio.create_task(beat()), time.process_time()
    await tree.scan()
    cpu = time.process_time() - used
    beating.cancel()
    waiting = asyncio.create_task(tree.wait_for_changes())
    await asyncio.sleep(0.5)
    began, used = time.monotonic(), time.process_time()
    await asyncio.sleep(IDLE)
    idle = (time.process_time() - used) / (time.monotonic() - began)
    waiting.cancel()
    await asyncio.wait([waiting])
    tree.close()
    return cpu * 1000, longest * 1000, idle * 1000
