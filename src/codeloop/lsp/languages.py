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
from codeloop.lsp.servers.choice import ServerChoice, select_servers
from codeloop.schema.bounds.language import (
    LSP_DIAGNOSTICS_SHOWN,
    LSP_DIAGNOSTICS_TIME,
    LSP_FIRST_DIAGNOSTICS_TIME,
    LSP_IDLE,
    LSP_MEMORY_POLL,
    LSP_PROCESSES_PER_SERVER,
)
from codeloop.schema.wire import JSON

_SHORT_WAIT = 0.2
"""Seconds that an edit waits for a server that was late `_MISSES` times."""
_MISSES = 2
"""Late answers in a row after which an edit waits for a server only briefly."""
_MAX_MESSAGE_LINES = 4
_MAX_NAMED_FILES = 8
"""Files that are named without showing their errors."""
Restarts = Callable[[str], float]
"""When the user last asked to restart the server of this name, on the wall clock."""


class Languages:
    """The servers of a work tree. None runs until a file is edited; `close` ends them all.

    `choices`: every server, with whether it can run. `top`: no root lies above it. `restarts`: see `Restarts`.
    """

    def __init__(
        self, choices: Sequence[ServerChoice], top: Path, callbacks: ServerCallbacks, restarts: Restarts
    ) -> None:
        self.choices = tuple(choices)
        self.top = top
        self.servers: dict[tuple[str, Path], ServerDiagnostics] = {}
        self._callbacks = callbacks
        self._restarts = restarts
        self._work: set[asyncio.Task[None]] = set()
        self._watchdog: asyncio.Task[None] | None = None
        self._waiting_edits = 0
        """Edits whose diagnostics are awaited at this moment."""

    @property
    def is_busy(self) -> bool:
        """Whether the project must stay open for the servers: never, since an idle project may end them."""
        return False

    def serves(self, path: Path) -> bool:
        """Return whether a server can run for a file."""
        return bool(select_servers(self.choices, path, self.top))

    async def find_servers(self, path: Path) -> list[ServerDiagnostics]:
        """Return the servers of a file without starting them; those to be restarted are ended."""
        server_diagnostics: list[ServerDiagnostics] = []
        for choice, root in select_servers(self.choices, path, self.top):
            key = (choice.row.name, self.top if choice.row.shared else root)
            if key not in self.servers:
                self._make_room(choice.row.name)
                self.servers[key] = ServerDiagnostics(LanguageServer(choice, root, self._callbacks))
            server = self.servers[key].server
            server.include(root)
            requested_at = self._restarts(server.name)
            # Another process may have got the user's wish: `codeloop lsp restart` runs in one of its own.
            if requested_at > server.restart_requested_at:
                server.restart_requested_at = requested_at
                await server.restart()
            server_diagnostics.append(self.servers[key])
        if server_diagnostics and self._watchdog is None:
            self._watchdog = asyncio.create_task(self._end_unused())
        return server_diagnostics

    def _make_room(self, name: str) -> None:
        """End the least recently used process of a server with processes for too many roots."""
        of_this_name = [news.server for (other, _), news in self.servers.items() if other == name]
        running = sorted((each for each in of_this_name if each.client is not None), key=lambda each: each.used_at)
        for server in running[: max(len(running) + 1 - LSP_PROCESSES_PER_SERVER.value, 0)]:
            self._start_task(server.stop())

    async def note_before_edits(self, edits: Sequence[FileEdit], related: Mapping[Path, str]) -> None:
        """Have the servers collect diagnostics before edits, without waiting. `related`: texts that may break."""
        for news, own in (await self._group_by_server(edits)).items():
            row = news.server.choice.row
            texts = {path: text for path, text in related.items() if row.language(path) is not None}
            self._start_task(news.prepare(own, texts))

    async def diagnose_edits(self, edits: Sequence[FileEdit]) -> list[tuple[Path, Diagnostic]]:
        """Return new diagnostics after edits that arrive in time; later ones are in the next result."""
        per_server = await self._group_by_server(edits)
        tasks = {self._start_task(news.apply_and_wait(own)): news for news, own in per_server.items()}
        self._waiting_edits += 1
        try:
            await self._wait_for_tasks(tasks, edits)
        finally:
            self._waiting_edits -= 1
        self._callbacks.watch(self.wants_files)
        return self._take_new([edit.path for edit in edits])

    def take_late(self) -> list[tuple[Path, Diagnostic]]:
        """Return diagnostics that arrived after their edits' results; nothing while an edit is waiting."""
        return [] if self._waiting_edits else self._take_new(())

    def _take_new(self, edited: Sequence[Path]) -> list[tuple[Path, Diagnostic]]:
        diagnostics = dict.fromkeys(each for news in self.servers.values() for each in news.take_new())
        return sorted(
            diagnostics, key=lambda each: (each[1].severity, each[0] not in edited, str(each[0]), each[1].start)
        )

    async def _wait_for_tasks(
        self, tasks: Mapping["asyncio.Task[None]", ServerDiagnostics], edits: Sequence[FileEdit]
    ) -> None:
        paths = [edit.path for edit in edits]
        await asyncio.gather(*(asyncio.wait({task}, timeout=_choose_wait(news, paths)) for task, news in tasks.items()))
        for task, news in tasks.items():
            news.misses += not task.done()

    @property
    def wants_files(self) -> bool:
        """Return whether a running server watches files."""
        clients = (news.server.client for news in self.servers.values())
        return any(client is not None and client.registrations.wants_files for client in clients)

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
                each
                for news in self.servers.values()
                for each in news.list_diagnostics(path)
                if each.severity <= WARNING
            ]
            if rows:
                diagnostics[str(path)] = [each.to_wire() for each in rows[: LSP_DIAGNOSTICS_SHOWN.value]]
        return diagnostics

    async def wait_idle(self) -> None:
        """Wait until no work is in progress."""
        while True:
            collecting = (news.collecting for news in self.servers.values())
            if not (work := {*self._work, *(task for task in collecting if task is not None and not task.done())}):
                return
            await asyncio.wait(work)

    async def close(self) -> None:
        """End every server."""
        tasks = [*self._work, *([self._watchdog] if self._watchdog is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.gather(*(news.server.stop() for news in self.servers.values()))
        self._callbacks.watch(self.wants_files)

    async def _group_by_server(self, edits: Sequence[FileEdit]) -> dict[ServerDiagnostics, list[FileEdit]]:
        file_edits: dict[ServerDiagnostics, list[FileEdit]] = {}
        for edit in edits:
            for news in await self.find_servers(edit.path):
                file_edits.setdefault(news, []).append(edit)
        return file_edits

    def _start_task(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _end_unused(self) -> None:
        """End unused servers, and those that use too much memory."""
        while True:
            await asyncio.sleep(LSP_MEMORY_POLL.seconds)
            for news in tuple(self.servers.values()):  # an edit may add others meanwhile
                server = news.server
                if server.client is None:
                    continue
                if time.monotonic() - server.used_at > LSP_IDLE.seconds and not server.lock.locked():
                    await server.stop()
                else:
                    await server.check_memory()
            self._callbacks.watch(self.wants_files)


def _choose_wait(news: ServerDiagnostics, paths: Sequence[Path]) -> float:
    """Return the seconds that an edit waits for a server: longest where it must analyse a file or project first."""
    if news.misses >= _MISSES:
        return min(_SHORT_WAIT, LSP_DIAGNOSTICS_TIME.seconds)
    return (
        LSP_DIAGNOSTICS_TIME.seconds if news.misses or news.has_answered(paths) else LSP_FIRST_DIAGNOSTICS_TIME.seconds
    )


def format_diagnostics(
    diagnostics: Sequence[tuple[Path, Diagnostic]], name: Callable[[Path], str], lead: str = ""
) -> str:
    """Return diagnostics for a model: one a line, `path:line: message`; "" for none.

    `name`: formats a path; `lead`: the text before their number.
    """
    if not diagnostics:
        return ""
    rows = [
        format_diagnostic(each, name(path), "warning: " if each.severity >= WARNING else "")
        for path, each in diagnostics[: LSP_DIAGNOSTICS_SHOWN.value]
    ]
    rest = len(diagnostics) - len(rows)
    others = dict.fromkeys(path for path, _ in diagnostics[len(rows) :]).keys() - {
        path for path, _ in diagnostics[: len(rows)]
    }
    where = ", ".join(sorted(map(name, others))[:_MAX_NAMED_FILES])
    where += ", ..." if len(others) > _MAX_NAMED_FILES else ""
    more = [f"({rest} more{where and f', also in {where}'})"] if rest else []
    warnings = sum(each.severity >= WARNING for _, each in diagnostics)
    counts = ((len(diagnostics) - warnings, "error"), (warnings, "warning"))
    summary = " and ".join(f"{count} new {kind}{'' if count == 1 else 's'}" for count, kind in counts if count)
    return "\n".join([f"{lead}{summary}:", *rows, *more])


def format_diagnostic(diagnostic: Diagnostic, name: str, kind: str = "") -> str:
    """Return one diagnostic as compilers print it: `name:line: kind message (source code)`."""
    lines = [line.strip() for line in diagnostic.message.splitlines() if line.strip()][:_MAX_MESSAGE_LINES]
    by = " ".join(each for each in (diagnostic.source, diagnostic.code) if each)
    return f"{name}:{diagnostic.start[0] + 1}: {kind}{'; '.join(lines)}{f' ({by})' if by else ''}"
