"""Measures the time that language servers add to an edit, and the CPU of ten servers that wait."""

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

from bench.bench_run import BenchRun
from codeloop.app.language.servers import find_dependents
from codeloop.kit.child_process import Launch
from codeloop.kit.program import Program
from codeloop.lsp.diagnostics_tracker import FileEdit
from codeloop.lsp.server import ServerCallbacks
from codeloop.lsp.server_pool import ServerPool
from codeloop.lsp.servers.choice import ProgramSearch, ServerChoice, list_servers
from codeloop.schema.bounds.language_tools import LSP_MEMORY_POLL
from codeloop.schema.config import LspServerConfig
from codeloop.workspace.process.program_sandboxes import ProgramSandbox
from codeloop.workspace.workspace import Workspace

PYTHON_SOURCE = "def double(x: int) -> int:\n    return x * 2\n\n\n" + "\n".join(
    f"def f{n}() -> int:\n    return double({n})\n\n" for n in range(300)
)
TYPESCRIPT_SOURCE = "export function double(x: number): number {\n  return x * 2;\n}\n" + "\n".join(
    f"export function f{n}(): number {{\n  return double({n});\n}}" for n in range(300)
)
SERVER_CASES = {
    "ty": ("a.py", PYTHON_SOURCE, 'double("a")\n'),
    "ruff": ("a.py", PYTHON_SOURCE, "print(undefined_name)\n"),
    "basedpyright": ("a.py", PYTHON_SOURCE, 'double("a")\n'),
    "typescript": ("a.ts", TYPESCRIPT_SOURCE, 'double("a");\n'),
}
"""By server: a file's name, its text of about a thousand lines, and a line that makes an error."""
EDIT_COUNT = 12
IDLE_SERVERS = 10


def measure_language_edits(bench: BenchRun) -> None:
    """Measure edits of a file, in turn with an error and without.
    A server that is not installed is left out.
    """
    for name in SERVER_CASES:
        times = asyncio.run(_time_edits(bench.folder / f"languages-{name}", name))
        if times:
            bench.put_own(f"edit-{name}", statistics.median(times))


def measure_idle_language_servers(bench: BenchRun) -> None:
    """Measure codeloop's CPU in a second while ten servers wait;
    that of the servers themselves is not counted.
    """
    for name in ("ruff", "ty"):
        cpu = asyncio.run(_measure_idle_cpu(bench.folder / f"idle-{name}", name))
        if cpu is not None:
            bench.put_own("languages-idle", cpu)
            return


async def _time_edits(folder: Path, name: str) -> list[float]:
    """Return the time that a server takes for each edit, ms; [] if it is not installed."""
    file, good, bad = SERVER_CASES[name]
    workspace, pool = _open_pool(folder, name)
    if pool is None:
        return []
    path, times = workspace.root / file, list[float]()
    path.write_text(good)
    for number in range(EDIT_COUNT):
        has_error = number % 2 == 0
        after = good + bad * has_error + "\n" * number
        edits = [FileEdit(path, path.read_text(), after)]
        began = time.monotonic()
        await pool.prepare_for_edits(edits, {})
        path.write_text(after)
        diagnostics = await pool.diagnose_edits(edits)
        # The first two edits start the server and have it read the project. One with wrong
        # diagnostics does not count.
        if number > 1 and bool(diagnostics) == has_error:
            times.append((time.monotonic() - began) * 1000)
        await pool.wait_idle()
    await pool.close()
    await workspace.close()
    return times


async def _measure_idle_cpu(folder: Path, name: str) -> float | None:
    """Return the CPU of this process in a second, ms; None if the server is not installed."""
    workspace, pool = _open_pool(folder, name, IDLE_SERVERS)
    if pool is None:
        return None
    path = workspace.root / "a.py"
    path.write_text("x = 1\n")
    await pool.diagnose_edits([FileEdit(path, "", "x = 1\n")])
    await pool.wait_idle()
    began, used = time.monotonic(), time.process_time()
    await asyncio.sleep(2 * LSP_MEMORY_POLL.seconds)
    milliseconds = (time.process_time() - used) * 1000 / (time.monotonic() - began)
    await pool.close()
    await workspace.close()
    return milliseconds


def _open_pool(folder: Path, name: str, copies: int = 1) -> tuple[Workspace, ServerPool | None]:
    """Return a new work tree and the pool of its one server; None: the server is not installed.

    `copies`: the pool has so many servers of other names with the same program, since one server
    runs only once for all folders of a project.
    """
    folder.mkdir()
    root = folder / "work"
    root.mkdir()
    (root / "tsconfig.json").write_text('{"compilerOptions": {"strict": true}}')
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path}
    workspace = Workspace(root, root, folder / "scratch", environment)
    search = ProgramSearch(root, root, is_trusted=True, path=path, installed=folder)
    rows = list_servers(None, search)
    configs = {
        each.row.name: LspServerConfig(disabled=True) for each in rows if each.row.name != name
    }
    chosen = list_servers(configs, search)
    found = next((each for each in chosen if each.state == "found"), None)
    if found is None:
        return workspace, None
    if copies > 1:
        copy = LspServerConfig(command=list(found.command), extensions=list(found.row.languages))
        configs |= {
            name: LspServerConfig(disabled=True),
            **{f"{name}-{number}": copy for number in range(copies)},
        }
        chosen = list_servers(configs, search)

    async def start(server: ServerChoice, folder: Path) -> Program:
        launch = Launch(server.command, folder, environment, {})
        return await workspace.program_sandboxes.open(launch, ProgramSandbox(), lambda _: None)

    def ignore(*_: object) -> None:
        """Do nothing: no client follows the servers here."""

    callbacks = ServerCallbacks(
        start=start,
        log=ignore,
        on_change=ignore,
        on_report=ignore,
        warn=ignore,
        watch=ignore,
        find_dependents=lambda path, row: find_dependents(workspace, path, row),
    )
    pool = ServerPool(chosen, root, callbacks, lambda _: 0.0)
    return workspace, pool
