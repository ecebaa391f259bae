"""The language servers of a work tree: which serve a file, diagnostics after edits, and shutdown."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codeloop.lsp.client.client import FileEvent
from codeloop.lsp.client.diagnostic import WARNING, Diagnostic
from codeloop.lsp.new_diagnostics import FileEdit, ServerDiagnostics
from codeloop.lsp.server import LanguageServer, ServerCallbacks
from codeloop.lsp.servers.choice import ChosenServer, serving
from codeloop.schema.bounds.language import LSP_FIRST, LSP_IDLE, LSP_LOOK, LSP_ROOTS, LSP_SHOWN, LSP_WAIT
from codeloop.schema.wire import JSON

_IMPATIENT = 0.2
"""Seconds that an edit waits for a server that was late twice."""
_MISSES = 2
_MESSAGE_LINES = 4
_NAMED = 8
"""How many files are named without showing their errors."""
Restarts = Callable[[str], float]


class Languages:
    """The servers of a work tree, which closing ends. None runs until a file is edited.

    `chosen_servers`: every server, with whether it can run. `top`: no root lies above it. `restarts`: when the user
    last asked to restart a server, on the wall clock.
    """

    def __init__(
        self, chosen_servers: Sequence[ChosenServer], top: Path, callbacks: ServerCallbacks, restarts: Restarts
    ) -> None:
        self.chosen = tuple(chosen_servers)
        self.top = top
        self.servers: dict[tuple[str, Path], ServerDiagnostics] = {}
        self._callbacks = callbacks
        self._restarts = restarts
        self._work: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._following = 0

    @property
    def is_busy(self) -> bool:
        """Return whether any work is awaited; idle servers don't count."""
        return False

    def serves(self, path: Path) -> bool:
        """Return whether a server can run for a file."""
        return bool(serving(self.chosen, path, self.top))

    async def servers_of(self, path: Path) -> list[ServerDiagnostics]:
        """Return the servers of a file without starting them; those to be restarted are ended."""
        server_diagnostics: list[ServerDiagnostics] = []
        for chosen_server, root in serving(self.chosen, path, self.top):
            key = (chosen_server.row.name, self.top if chosen_server.row.shared else root)
            if key not in self.servers:
                self._make_room(chosen_server.row.name)
                self.servers[key] = ServerDiagnostics(LanguageServer(chosen_server, root, self._callbacks))
            server = self.servers[key].server
            server.include(root)
            delay = self._restarts(server.name)
            if delay > server.asked_at:
                server.asked_at = delay
                await server.restart()
            server_diagnostics.append(self.servers[key])
        if server_diagnostics and self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return server_diagnostics

    def _make_room(self, name: str) -> None:
        """End the least recently used process of a server with processes for too many roots."""
        own = [news.server for (other, _), news in self.servers.items() if other == name]
        running = sorted((each for each in own if each.client is not None), key=lambda each: each.used_at)
        for server in running[: max(len(running) + 1 - LSP_ROOTS.value, 0)]:
            self._begin(server.stop())

    async def note_before_edits(self, edits: Sequence[FileEdit], known: Mapping[Path, str]) -> None:
        """Have the servers collect diagnostics before edits, without waiting."""
        for news, own in (await self._per_server(edits)).items():
            row = news.server.chosen.row
            texts = {path: text for path, text in known.items() if row.language(path) is not None}
            self._begin(news.prepare(own, texts))

    async def diagnose_edits(self, edits: Sequence[FileEdit]) -> list[tuple[Path, Diagnostic]]:
        """Return new diagnostics after edits that arrive in time; later ones are in the next result."""
        per_server = await self._per_server(edits)
        tasks = {self._begin(news.follow(own)): news for news, own in per_server.items()}
        self._following += 1
        try:
            await self._wait(tasks, edits)
        finally:
            self._following -= 1
        self._callbacks.watch(self.wants_files)
        return self._take_new([edit.path for edit in edits])

    def take_late(self) -> list[tuple[Path, Diagnostic]]:
        """Return diagnostics that arrived after their edits' results; nothing while an edit is waiting."""
        return [] if self._following else self._take_new(())

    def _take_new(self, edited: Sequence[Path]) -> list[tuple[Path, Diagnostic]]:
        diagnostics = dict.fromkeys(each for news in self.servers.values() for each in news.take_new())
        return sorted(
            diagnostics, key=lambda each: (each[1].severity, each[0] not in edited, str(each[0]), each[1].start)
        )

    async def _wait(self, tasks: Mapping["asyncio.Task[None]", ServerDiagnostics], edits: Sequence[FileEdit]) -> None:
        paths = [edit.path for edit in edits]
        await asyncio.gather(*(asyncio.wait({task}, timeout=_patience(news, paths)) for task, news in tasks.items()))
        for task, news in tasks.items():
            news.misses += not task.done()

    @property
    def wants_files(self) -> bool:
        """Return whether a running server watches files."""
        clients = (news.server.client for news in self.servers.values())
        return any(client is not None and client.registered.wants_files for client in clients)

    def notify_changed(self, path: Path, event: FileEvent) -> None:
        """Notify the running servers that a file was changed on disk."""
        for news in self.servers.values():
            if news.server.client is not None:
                news.server.client.notify_changed([(path, event)])

    def collect_diagnostics(self, paths: Iterable[Path]) -> JSON:
        """Return errors and warnings of files in the wire form, by path."""
        diagnostics: dict[str, Any] = {}
        for path in paths:
            rows = [
                row for news in self.servers.values() for row in news.list_diagnostics(path) if row.severity <= WARNING
            ]
            if rows:
                diagnostics[str(path)] = [row.wire() for row in rows[: LSP_SHOWN.value]]
        return diagnostics

    async def wait_idle(self) -> None:
        """Wait until no work is in progress."""
        while True:
            looking = (news.looking for news in self.servers.values())
            if not (work := {*self._work, *(task for task in looking if task is not None and not task.done())}):
                return
            await asyncio.wait(work)

    async def close(self) -> None:
        """End every server."""
        tasks = [*self._work, *([self._looking] if self._looking is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.gather(*(news.server.stop() for news in self.servers.values()))
        self._callbacks.watch(self.wants_files)

    async def _per_server(self, edits: Sequence[FileEdit]) -> dict[ServerDiagnostics, list[FileEdit]]:
        file_edits: dict[ServerDiagnostics, list[FileEdit]] = {}
        for edit in edits:
            for news in await self.servers_of(edit.path):
                file_edits.setdefault(news, []).append(edit)
        return file_edits

    def _begin(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _look(self) -> None:
        """End unused servers, and those that use too much memory."""
        while True:
            await asyncio.sleep(LSP_LOOK.seconds)
            for news in tuple(self.servers.values()):  # an edit may add others meanwhile
                server = news.server
                if server.client is None:
                    continue
                if time.monotonic() - server.used_at > LSP_IDLE.seconds and not server.turn.locked():
                    await server.stop()
                else:
                    await server.check_memory()
            self._callbacks.watch(self.wants_files)


def _patience(news: ServerDiagnostics, paths: Sequence[Path]) -> float:
    """Return the seconds that an edit waits for a server: longest where it must analyse a file or project first."""
    if news.misses >= _MISSES:
        return min(_IMPATIENT, LSP_WAIT.seconds)
    return LSP_WAIT.seconds if news.misses or news.has_answered(paths) else LSP_FIRST.seconds


def format_diagnostics(
    diagnostics: Sequence[tuple[Path, Diagnostic]], name: Callable[[Path], str], lead: str = ""
) -> str:
    """Return diagnostics for a model: one a line, `path:line: message`; "" for none.

    `name`: formats a path; `lead`: the text before their number.
    """
    if not diagnostics:
        return ""
    rows = [
        row(each, name(path), "warning: " if each.severity >= WARNING else "")
        for path, each in diagnostics[: LSP_SHOWN.value]
    ]
    rest = len(diagnostics) - len(rows)
    others = dict.fromkeys(path for path, _ in diagnostics[len(rows) :]).keys() - {
        path for path, _ in diagnostics[: len(rows)]
    }
    where = ", ".join(sorted(map(name, others))[:_NAMED]) + (", ..." if len(others) > _NAMED else "")
    more = [f"({rest} more{where and f', also in {where}'})"] if rest else []
    warnings = sum(each.severity >= WARNING for _, each in diagnostics)
    counts = ((len(diagnostics) - warnings, "error"), (warnings, "warning"))
    summary = " and ".join(f"{count} new {kind}{'' if count == 1 else 's'}" for count, kind in counts if count)
    return "\n".join([f"{lead}{summary}:", *rows, *more])


def row(diagnostic: Diagnostic, name: str, kind: str = "") -> str:
    """Return one diagnostic in compilers' form; `kind` precedes its message."""
    lines = [line.strip() for line in diagnostic.message.splitlines() if line.strip()][:_MESSAGE_LINES]
    by = " ".join(each for each in (diagnostic.source, diagnostic.code) if each)
    return f"{name}:{diagnostic.start[0] + 1}: {kind}{'; '.join(lines)}{f' ({by})' if by else ''}"
