"""The pool of language servers of a work tree: starts them, collects diagnostics after edits,
ends unused ones.

The entrance to this room, for tools and for `app/language`.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codeloop.lsp.client.client import FileEvent
from codeloop.lsp.client.diagnostic import WARNING, Diagnostic
from codeloop.lsp.client.text_positions import TextPosition
from codeloop.lsp.diagnostics_tracker import DiagnosticsTracker, FileEdit
from codeloop.lsp.server import LanguageServer, ServerCallbacks
from codeloop.lsp.servers.choice import ServerChoice, select_servers
from codeloop.schema.bounds.language_tools import (
    LSP_DIAGNOSTICS_SHOWN,
    LSP_DIAGNOSTICS_TIME,
    LSP_FIRST_DIAGNOSTICS_TIME,
    LSP_IDLE,
    LSP_MEMORY_POLL,
    LSP_PROCESSES_PER_SERVER,
)
from codeloop.schema.wire import JSON

# The time that an edit waits for a server that was late `_MAX_MISSES` times in a row.
_SHORT_WAIT_SECONDS = 0.2
# Late answers in a row after which an edit waits for a server only briefly.
_MAX_MISSES = 2
FindRestartTime = Callable[[str], float]
"""Returns when the user last asked to restart the server of a name,
in seconds of the wall clock.
"""


class ServerPool:
    """The servers of a work tree. None runs until a file of it is edited or asked about;
    `close` ends them all.

    `choices`: every server, with whether it can run. `top`: the folder above which no
    project root is looked for.
    `trackers`: the servers with their diagnostics, by name and root (`top` where one
    process serves all roots).
    """

    def __init__(
        self,
        choices: Sequence[ServerChoice],
        top: Path,
        callbacks: ServerCallbacks,
        find_restart_time: FindRestartTime,
    ) -> None:
        self.choices = tuple(choices)
        self.top = top
        self.trackers: dict[tuple[str, Path], DiagnosticsTracker] = {}
        self._callbacks = callbacks
        self._find_restart_time = find_restart_time
        self._tasks: set[asyncio.Task[None]] = set()
        self._watchdog: asyncio.Task[None] | None = None
        self._waiting_edits = 0
        """Edits whose diagnostics are awaited at this moment."""

    @property
    def is_busy(self) -> bool:
        """Whether the project must stay open for the servers: never,
        since an idle project may end them.
        """
        return False

    def serves(self, path: Path) -> bool:
        """Return whether a server can run for a file."""
        return bool(select_servers(self.choices, path, self.top))

    async def prepare_trackers(self, path: Path) -> list[DiagnosticsTracker]:
        """Return the trackers of a file's servers, made at the first time; no server is started.

        A server that the user wants restarted is ended; surplus processes of a server are, too.
        """
        trackers: list[DiagnosticsTracker] = []
        for choice, root in select_servers(self.choices, path, self.top):
            key = (choice.row.name, self.top if choice.row.shared else root)
            if key not in self.trackers:
                self._end_surplus(choice.row.name)
                self.trackers[key] = DiagnosticsTracker(
                    LanguageServer(choice, root, self._callbacks)
                )
            server = self.trackers[key].server
            server.add_root(root)
            requested_at = self._find_restart_time(server.name)
            # `codeloop lsp restart` runs in a process of its own, so the wish is looked up here,
            # not received.
            if requested_at > server.restart_requested_at:
                server.restart_requested_at = requested_at
                await server.restart()
            trackers.append(self.trackers[key])
        if trackers and self._watchdog is None:
            self._watchdog = asyncio.create_task(self._end_unused())
        return trackers

    def _end_surplus(self, name: str) -> None:
        """End the least recently used processes of a server that runs for too many roots."""
        servers = [
            tracker.server for tracker in self.trackers.values() if tracker.server.name == name
        ]
        running = sorted(
            (server for server in servers if server.client is not None),
            key=lambda each: each.used_at,
        )
        # One more is about to be started.
        surplus = max(len(running) + 1 - LSP_PROCESSES_PER_SERVER.value, 0)
        for server in running[:surplus]:
            self._start_task(server.stop())

    async def prepare_for_edits(
        self, edits: Sequence[FileEdit], related: Mapping[Path, str]
    ) -> None:
        """Start to record the diagnostics before edits.
        `related`: texts of other files that the edits may break.
        """
        for tracker, server_edits in (await self._group_by_server(edits)).items():
            row = tracker.server.choice.row
            texts = {
                path: text for path, text in related.items() if row.find_language(path) is not None
            }
            self._start_task(tracker.prepare(server_edits, texts))

    async def diagnose_edits(self, edits: Sequence[FileEdit]) -> list[tuple[Path, Diagnostic]]:
        """Return the new diagnostics after edits, as far as they arrive in time;
        the next call returns later ones.
        """
        per_server = await self._group_by_server(edits)
        tasks = {
            self._start_task(tracker.apply_and_wait(server_edits)): tracker
            for tracker, server_edits in per_server.items()
        }
        self._waiting_edits += 1
        try:
            await self._wait_for_tasks(tasks, edits)
        finally:
            self._waiting_edits -= 1
        self._callbacks.watch(self.watches_files)
        return self._take_new_diagnostics([edit.path for edit in edits])

    def take_late_diagnostics(self) -> list[tuple[Path, Diagnostic]]:
        """Return diagnostics that arrived after the results of their edits;
        none while an edit waits for its own.
        """
        return [] if self._waiting_edits else self._take_new_diagnostics(())

    def _take_new_diagnostics(self, edited: Sequence[Path]) -> list[tuple[Path, Diagnostic]]:
        # Without duplicates: two servers may report the same.
        diagnostics = dict.fromkeys(
            each for tracker in self.trackers.values() for each in tracker.take_new_diagnostics()
        )

        def rank(entry: tuple[Path, Diagnostic]) -> tuple[int, bool, str, TextPosition]:
            path, diagnostic = entry
            return diagnostic.severity, path not in edited, str(path), diagnostic.start

        return sorted(diagnostics, key=rank)

    async def _wait_for_tasks(
        self, tasks: Mapping["asyncio.Task[None]", DiagnosticsTracker], edits: Sequence[FileEdit]
    ) -> None:
        paths = [edit.path for edit in edits]
        await asyncio.gather(
            *(
                asyncio.wait({task}, timeout=_choose_wait(tracker, paths))
                for task, tracker in tasks.items()
            )
        )
        for task, tracker in tasks.items():
            tracker.miss_count += not task.done()

    @property
    def watches_files(self) -> bool:
        """Whether a running server watches files."""
        clients = (tracker.server.client for tracker in self.trackers.values())
        return any(client is not None and client.registrations.watches_files for client in clients)

    def notify_changed(self, path: Path, event: FileEvent) -> None:
        """Notify the running servers that a file was changed on disk."""
        for tracker in self.trackers.values():
            if tracker.server.client is not None:
                tracker.server.client.notify_changed([(path, event)])

    def collect_diagnostics(self, paths: Iterable[Path]) -> JSON:
        """Return the errors and warnings of files by path, in the form that clients get."""
        diagnostics: dict[str, Any] = {}
        for path in paths:
            rows = [
                each
                for tracker in self.trackers.values()
                for each in tracker.list_diagnostics(path)
                if each.severity <= WARNING
            ]
            if rows:
                diagnostics[str(path)] = [
                    each.to_wire() for each in rows[: LSP_DIAGNOSTICS_SHOWN.value]
                ]
        return diagnostics

    async def wait_idle(self) -> None:
        """Wait until no server is being asked or ended."""
        while True:
            collecting_tasks = (tracker.collecting_task for tracker in self.trackers.values())
            running = {
                *self._tasks,
                *(task for task in collecting_tasks if task is not None and not task.done()),
            }
            if not running:
                return
            await asyncio.wait(running)

    async def close(self) -> None:
        """End every server."""
        tasks = [*self._tasks, *([self._watchdog] if self._watchdog is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.gather(*(tracker.server.stop() for tracker in self.trackers.values()))
        self._callbacks.watch(self.watches_files)

    async def _group_by_server(
        self, edits: Sequence[FileEdit]
    ) -> dict[DiagnosticsTracker, list[FileEdit]]:
        file_edits: dict[DiagnosticsTracker, list[FileEdit]] = {}
        for edit in edits:
            for tracker in await self.prepare_trackers(edit.path):
                file_edits.setdefault(tracker, []).append(edit)
        return file_edits

    def _start_task(self, coroutine: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end_unused(self) -> None:
        """End unused servers, and those that use too much memory."""
        while True:
            await asyncio.sleep(LSP_MEMORY_POLL.seconds)
            # A copy, since an edit may add trackers during the awaits below.
            for tracker in tuple(self.trackers.values()):
                server = tracker.server
                if server.client is None:
                    continue
                if (
                    time.monotonic() - server.used_at > LSP_IDLE.seconds
                    and not server.lock.locked()
                ):
                    await server.stop()
                else:
                    await server.check_memory()
            self._callbacks.watch(self.watches_files)


def _choose_wait(tracker: DiagnosticsTracker, paths: Sequence[Path]) -> float:
    """Return the seconds that an edit waits for a server: the most if the server has
    to analyse the files first.
    """
    if tracker.miss_count >= _MAX_MISSES:
        return min(_SHORT_WAIT_SECONDS, LSP_DIAGNOSTICS_TIME.seconds)
    if tracker.miss_count or tracker.has_answered(paths):
        return LSP_DIAGNOSTICS_TIME.seconds
    return LSP_FIRST_DIAGNOSTICS_TIME.seconds
