"""What language servers add to an edit, once they have started, and what ten of them cost while nobody needs them."""

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

from bench.figures import Bench
from codeloop.app.language.servers import find_dependents
from codeloop.lsp.diagnostics_tracker import FileEdit
from codeloop.lsp.server import ServerCallbacks
from codeloop.lsp.server_pool import ServerPool
from codeloop.lsp.servers.choice import ProgramSearch, ServerChoice, list_servers
from codeloop.schema.bounds.language_tools import LSP_MEMORY_POLL
from codeloop.schema.config import LspServerConfig
from codeloop.workspace.process.running_program import RunningProgram, start_program
from codeloop.workspace.sandbox.process_launcher import Launch
from codeloop.workspace.workspace import Workspace

PYTHON = "def double(x: int) -> int:\n    return x * 2\n\n\n" + "\n".join(
    f"def f{n}() -> int:\n    return double({n})\n\n" for n in range(300)
)
TYPESCRIPT = "export function double(x: number): number {\n  return x * 2;\n}\n" + "\n".join(
    f"export function f{n}(): number {{\n  return double({n});\n}}" for n in range(300)
)
SUBJECTS = {
    "ty": ("a.py", PYTHON, 'double("a")\n'),
    "ruff": ("a.py", PYTHON, "print(undefined_name)\n"),
    "basedpyright": ("a.py", PYTHON, 'double("a")\n'),
    "typescript": ("a.ts", TYPESCRIPT, 'double("a");\n'),
}
"""Servers, each with a file of about a thousand lines and what makes an error of it."""
EDITS = 12
IDLE = 10


def languages(bench: Bench) -> None:
    """Measure edits of a file, with an error and without in turn. A server that is not installed is left out."""
    for name in SUBJECTS:
        found = asyncio.run(_edits(bench.folder / f"languages-{name}", name))
        if found:
            _put(bench, f"edit-{name}", statistics.median(found))


def languages_idle(bench: Bench) -> None:
    """Measure our CPU of a second while ten servers wait; that of their own is not ours."""
    for name in ("ruff", "ty"):
        found = asyncio.run(_idle(bench.folder / f"idle-{name}", name))
        if found is not None:
            _put(bench, "languages-idle", found)
            return


def _put(bench: Bench, name: str, value: float) -> None:
    for measured in bench.places:
        if measured.subject.name == "codeloop":
            bench.put(measured, name, value)


async def _edits(folder: Path, name: str) -> list[float]:
    file, good, bad = SUBJECTS[name]
    workspace, opened = _opened(folder, name)
    if opened is None:
        return []
    path, taken = workspace.root / file, list[float]()
    path.write_text(good)
    for number in range(EDITS):
        after = good + bad * (number % 2 == 0) + "\n" * number
        edits = [FileEdit(path, path.read_text(), after)]
        began = time.monotonic()
        await opened.prepare_for_edits(edits, {})
        path.write_text(after)
        found = await opened.diagnose_edits(edits)
        if number > 1 and bool(found) == (number % 2 == 0):  # the first ones start it and let it look
            taken.append((time.monotonic() - began) * 1000)
        await opened.wait_idle()
    await opened.close()
    await workspace.close()
    return taken


async def _idle(folder: Path, name: str) -> float | None:
    workspace, opened = _opened(folder, name)
    if opened is None:
        return None
    for number in range(IDLE):
        path = workspace.root / str(number) / "a.py"
        path.parent.mkdir()
        (path.parent / "pyproject.toml").write_text("[project]\nname = 'a'\nversion = '0'\n")
        path.write_text("x = 1\n")
        await opened.diagnose_edits([FileEdit(path, "", "x = 1\n")])
    await opened.wait_idle()
    began, used = time.monotonic(), time.process_time()
    await asyncio.sleep(2 * LSP_MEMORY_POLL.seconds)
    share = (time.process_time() - used) * 1000 / (time.monotonic() - began)
    await opened.close()
    await workspace.close()
    return share


def _opened(folder: Path, name: str) -> tuple[Workspace, ServerPool | None]:
    """Return a new work tree that one server serves; None for one that is not on the PATH, or beside this Python."""
    folder.mkdir()
    root = folder / "work"
    root.mkdir()
    (root / "tsconfig.json").write_text('{"compilerOptions": {"strict": true}}')
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path}
    workspace = Workspace(root, root, folder / "scratch", environment)
    place = ProgramSearch(root, root, is_trusted=True, path=path, installed=folder)
    rows = list_servers(None, place)
    others = {each.row.name: LspServerConfig(disabled=True) for each in rows if each.row.name != name}
    chosen = list_servers(others, place)
    if not any(each.state == "found" for each in chosen):
        return workspace, None

    async def start(server: ServerChoice, at: Path) -> RunningProgram:
        return await start_program(workspace, Launch(server.command, at, environment, {}), lambda _: None)

    def nothing(*_: object) -> None:
        """Nobody follows."""

    callbacks = ServerCallbacks(
        start=start,
        log=nothing,
        on_change=nothing,
        on_report=nothing,
        warn=nothing,
        watch=nothing,
        find_dependents=lambda path, row: find_dependents(workspace, path, row),
    )
    opened = ServerPool(chosen, root, callbacks, lambda _: 0.0)
    return workspace, opened
