"""The scripted server behind real `ServerPool`, in a folder: edits go in, new errors come out."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codeloop.kit.child_process import Launch
from codeloop.kit.program import Program, mark_environment
from codeloop.lsp.client.diagnostic import format_new_diagnostics
from codeloop.lsp.diagnostics_tracker import FileEdit
from codeloop.lsp.server import LanguageServer, ServerCallbacks
from codeloop.lsp.server_pool import FindRestartTime, ServerPool
from codeloop.lsp.servers.choice import ProgramSearch, ServerChoice, list_servers
from codeloop.lsp.servers.server_row import ServerRow
from codeloop.schema.config import LspServerConfig
from codeloop.schema.wire import replace
from codeloop.workspace.process.program_sandboxes import ProgramSandbox
from codeloop.workspace.workspace import Workspace
from tests.tool.context import TestContext

SERVER = Path(__file__).with_name("scripted_server.py")


@dataclass
class World:
    """`logs`: what servers wrote to stderr and what was noted of them;
    `warned`: what a person was shown.

    `watched`: whether files were to be watched, each time that was said.
    """

    root: Path
    languages: ServerPool
    logs: list[str] = field(default_factory=list[str])
    warned: list[str] = field(default_factory=list[str])
    watched: list[bool] = field(default_factory=list[bool])
    seconds: float = 0.0

    async def edit(self, name: str, text: str | None, known: tuple[str, ...] = ()) -> str:
        """Make an edit as the tools do and return what its result says;
        `seconds` is how long that took.
        """
        path = self.root / name
        before = path.read_text() if path.exists() else None
        edits = [FileEdit(path, before, text)]
        began = time.monotonic()
        await self.languages.prepare_for_edits(
            edits, {self.root / each: (self.root / each).read_text() for each in known}
        )
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
        found = await self.languages.diagnose_edits(edits)
        self.seconds = time.monotonic() - began
        return format_new_diagnostics(found, lambda path: path.name)

    def late(self) -> str:
        """Return what the next result of any tool says."""
        return format_new_diagnostics(
            self.languages.take_late_diagnostics(), lambda path: path.name, "Late: "
        )

    @property
    def server(self) -> LanguageServer:
        return next(iter(self.languages.trackers.values())).server

    def speak(self, **count: int) -> None:
        """Have a server that was ordered to hold back what it has to say, say it: all of it,
        or the first of it.
        """
        assert self.server.client is not None
        self.server.client.connection.notify("scripted/speak", count)

    def trace(self) -> list[str]:
        file = self.root.parent / "traces" / "trace"
        return file.read_text().splitlines() if file.exists() else []

    def started(self) -> list[int]:
        return [int(line.split()[1]) for line in self.trace() if line.startswith("started")]


@asynccontextmanager
async def world(
    folder: Path,
    *orders: str,
    ctx: TestContext | None = None,
    restarts: FindRestartTime = lambda _: 0.0,
    warnings: bool | None = None,
    **row: Any,
) -> AsyncGenerator[World]:
    """Open a work tree whose files `.x` the scripted server serves;
    it has ended afterwards, with all its processes.

    `ctx`: the context whose work tree it is. `row`: what else is said of the server in its row.
    """
    root, traces = ctx.workspace.root if ctx else folder / "work", folder / "traces"
    root.mkdir(exist_ok=True)
    traces.mkdir()
    place = (
        ctx.workspace
        if ctx
        else Workspace(
            root, root, folder / "scratch", {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
        )
    )
    logs, warned, watched = list[str](), list[str](), list[bool]()

    async def start(chosen: ServerChoice, at: Path) -> Program:
        launch = Launch(chosen.command, at, mark_environment(place.environment))
        return await place.program_sandboxes.open(
            launch, ProgramSandbox(), lambda data: logs.append(data.decode())
        )

    async def users(path: Path, _row: ServerRow) -> list[Path]:
        return [
            each
            for each in sorted(root.glob("*.x"))
            if each != path and path.stem in each.read_text().split()
        ]

    callbacks = ServerCallbacks(
        start=start,
        log=lambda _name, line: logs.append(line),
        on_change=lambda: None,
        on_report=lambda _name, _path: None,
        warn=warned.append,
        watch=watched.append,
        find_dependents=users,
    )
    command = [sys.executable, str(SERVER), str(traces), *orders]
    configured = {
        "scripted": LspServerConfig(command=command, extensions=[".x"], warnings=warnings)
    }
    chosen = list_servers(
        configured, ProgramSearch(root, root, is_trusted=True, path="", installed=folder / "none")
    )
    chosen = [
        replace(each, row=replace(each.row, **row))
        for each in chosen
        if each.row.name == "scripted"
    ]
    languages = ServerPool(chosen, root, callbacks, restarts)
    if ctx is not None:
        ctx.services.languages = languages
    try:
        yield World(root, languages, logs, warned, watched)
    finally:
        async with asyncio.timeout(60):
            await languages.close()
            await place.close()
