"""Tracks the diagnostics of one server, to find those that are new after an edit.

Servers differ: some answer requests (pull), others report when they like (push), and a report may
come late, in several parts, or be about an older text. So the tracker compares with what it has
reported before, and waits only as long as an edit can bear;
whatever comes later is part of the next result.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from codeloop.kit.asyncio_tasks import cancel_all
from codeloop.lsp.client.client import CHANGED, CREATED, DELETED, FileEvent, LanguageClient
from codeloop.lsp.client.connection import ServerGone
from codeloop.lsp.client.diagnostic import ERROR, WARNING, Diagnostic, find_new_diagnostics
from codeloop.lsp.client.document import read_text
from codeloop.lsp.dependent_search import DependentSearch
from codeloop.lsp.server import LanguageServer, ServerUnavailable
from codeloop.schema.bounds.language_tools import (
    LSP_DIAGNOSTICS_TIME,
    LSP_FILE_BYTES,
    LSP_LATE_DIAGNOSTICS_TIME,
    LSP_OPEN_FILES,
    LSP_OTHER_FILES_TIME,
    LSP_READ_FILES,
)

# The time in which a server sends the diagnostics of several files in one burst.
_BURST_SECONDS = 0.02
# After this time without reports, a server that pushes diagnostics has reported
# all effects of an edit.
_SETTLE_SECONDS = 0.15
# After this time without reports, a server that pushes diagnostics has analysed the project.
_IDLE_SECONDS = 3.0
# After this time without a report on a file, an idle server is assumed to have no
# diagnostics for the file.
_ASSUME_CLEAN_SECONDS = 5.0


class FileEdit(Struct, frozen=True):
    """The text of a file before and after an edit; None: the file does not exist.
    `path` is resolved.
    """

    path: Path
    before: str | None
    after: str | None

    @property
    def event(self) -> FileEvent:
        """The kind of change in the protocol: created, changed or deleted."""
        if self.before is None:
            return CREATED
        return CHANGED if self.after is not None else DELETED


class DiagnosticsTracker:
    """The diagnostics of one server, compared with those that the model was shown before."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.miss_count = 0
        """For how many edits in a row the server sent no diagnostics in time."""
        self._answered_paths: set[Path] = set()
        """The edited files that the server has reported on since its start."""
        self._reported: dict[Path, tuple[Diagnostic, ...]] = {}
        """The diagnostics of each file that are not new any more."""
        self._client: LanguageClient | None = None
        """The connection that all of this is about: it starts again when the server does."""
        self._waiting_count = 0
        """How many tasks wait for the server's lock."""
        self.collecting_task: asyncio.Task[None] | None = None
        """The task that collects the last edits' effects on other files."""
        self._has_analysed_project = False
        """If true, files without a report have no diagnostics."""
        self._hurry_requested = asyncio.Event()
        """Set while another task waits for the server's lock."""
        self._edited_paths: set[Path] = set()
        """The files of the last edits."""
        self._dependent_search = DependentSearch(server)

    async def prepare(self, edits: Sequence[FileEdit], related: Mapping[Path, str]) -> None:
        """Record the diagnostics before edits. `related`: texts of other files
        that the edits may break.
        """
        async with self._lock_documents():
            client = await self._connect()
            if client is None:
                return
            await self._record_before(client, edits, related)

    async def apply_and_wait(self, edits: Sequence[FileEdit]) -> None:
        """Send edits to the server and wait for its diagnostics,
        or until another task wants the server.
        """
        # Some servers end once just after they were started: the next one answers.
        if not await self._apply(edits):
            await self._apply(edits)

    async def _apply(self, edits: Sequence[FileEdit]) -> bool:
        """Do the work of `apply_and_wait`.
        Return False if the server was lost before it had answered anything.
        """
        start = time.monotonic()
        async with self._lock_documents():
            known_client = self._client
            client = await self._connect()
            if client is None:
                return True
            if client is not known_client:
                # It was lost since `prepare`, as some servers are that are just starting, and
                # has to know what was there before, or all of it would count as that.
                await self._record_before(client, edits, {})
            for edit in edits:
                # `prepare` skipped the file if its folder became a project root only now.
                if edit.before is None:
                    self._reported.setdefault(edit.path, ())
            self._record_first_reports(client)
            self._has_analysed_project = self._has_analysed_project or _is_idle(client)
            self._send_edits(client, edits)
            others = [path for path in client.documents if path not in self._edited_paths]
            for path in others:
                # The file may depend on the change, so its diagnostics are requested again.
                client.documents[path].pulled = None
            results = await asyncio.gather(
                *(
                    self._wait_for_diagnostics(client, path)
                    for path in self._edited_paths
                    if path in client.documents
                )
            )
            self._answered_paths |= {
                path for path in self._edited_paths if client.find_diagnostics(path) is not None
            }
            # Another task waits for the server: what these edits have changed in other files
            # is part of a later result.
            if self._waiting_count:
                return True
            if None in results:
                if not await client.is_responding() and self.server.client is client:
                    await self.server.fail("it does not answer")
                return True
            if results and time.monotonic() - start < LSP_DIAGNOSTICS_TIME.seconds:
                self.miss_count = 0
            self.collecting_task = asyncio.create_task(_collect_diagnostics(client, others))
            await asyncio.wait({self.collecting_task}, timeout=LSP_OTHER_FILES_TIME.seconds)
            if not client.pulls_diagnostics:
                await asyncio.sleep(_BURST_SECONDS)
                await self._wait_until_quiet(client)
            return True
        return bool(self._answered_paths)

    async def _record_before(
        self, client: LanguageClient, edits: Sequence[FileEdit], related: Mapping[Path, str]
    ) -> None:
        """Record the diagnostics of the texts before edits; `related` as of `prepare`."""
        self._reload_changed_files(client, frozenset(edit.path for edit in edits))
        dependents = await self._dependent_search.find_texts(
            client, [edit.path for edit in edits if edit.before is not None]
        )
        texts = {
            **dependents,
            **related,
            **{edit.path: edit.before for edit in edits if edit.before is not None},
        }
        for path, text in texts.items():
            self._send_text(client, path, text)
        await asyncio.gather(*(self._record_baseline(client, path) for path in [*client.documents]))
        for edit in edits:
            if edit.before is None:
                self._reported[edit.path] = ()

    def _send_edits(self, client: LanguageClient, edits: Sequence[FileEdit]) -> None:
        """Send edits to the server: the new texts of files, and what has changed on the disk."""
        for edit in edits:
            if edit.after is None:
                client.close_document(edit.path)
                self._reported.pop(edit.path, None)
            else:
                self._send_text(client, edit.path, edit.after)
                client.notify_saved(edit.path)
        client.notify_changed((edit.path, edit.event) for edit in edits)
        self._edited_paths = {edit.path for edit in edits}

    def has_answered(self, paths: Iterable[Path]) -> bool:
        """Return whether the server is running and has reported on one of
        these files after an edit.
        """
        return self.server.client is self._client and not self._answered_paths.isdisjoint(paths)

    def open_read_files(self, client: LanguageClient, paths: Iterable[Path]) -> None:
        """Open the files that the model has read, so that new diagnostics in them are reported."""
        for path in list(dict.fromkeys(paths))[: LSP_READ_FILES.value]:
            if path not in client.documents and (text := read_text(path)) is not None:
                self._send_text(client, path, text)

    async def open_document(self, path: Path, text: str) -> LanguageClient:
        """Return the server's client with a file's current text opened.
        Raises ServerUnavailable.
        """
        client = await self.server.connect()
        async with self._lock_documents():
            await self._connect()
            self._reload_changed_files(client)
            self._send_text(client, path, text)
        return client

    def take_new_diagnostics(self) -> list[tuple[Path, Diagnostic]]:
        """Return the new diagnostics since the last call, all about current texts.

        Diagnostics of an outdated text are kept for a later call: the user or another
        program has changed the file.
        """
        client = self.server.client
        if client is None or client is not self._client:
            return []
        has_settled = self._has_settled(client)
        diagnostics: list[tuple[Path, Diagnostic]] = []
        for path in list(self.server.fresh_paths):
            current = client.find_diagnostics(path)
            if current is None:
                continue
            new = self._list_unreported(client, path)
            if new and not (
                client.is_current(path) and (path in self._edited_paths or has_settled)
            ):
                continue
            self.server.fresh_paths.discard(path)
            diagnostics += [(path, each) for each in new]
            self._reported[path] = current
        return diagnostics

    def list_diagnostics(self, path: Path) -> tuple[Diagnostic, ...]:
        """Return a file's known diagnostics, without those that `take_new_diagnostics`
        has yet to return.
        """
        return self._reported.get(path, ())

    @asynccontextmanager
    async def _lock_documents(self) -> AsyncGenerator[None]:
        """Wait for exclusive use of the server's documents;
        the task that holds the lock is asked to hurry.
        """
        self._waiting_count += 1
        self._hurry_requested.set()
        try:
            await self.server.lock.acquire()
        finally:
            self._waiting_count -= 1
            if not self._waiting_count:
                self._hurry_requested.clear()
        if self.collecting_task is not None:
            # Each edit requests the diagnostics of all open files again,
            # so the older request is useless.
            self.collecting_task.cancel()
        try:
            # `LanguageServer` handles the end of the server.
            with suppress(ServerGone):
                yield
        finally:
            self.server.lock.release()

    async def _connect(self) -> LanguageClient | None:
        try:
            client = await self.server.connect()
        except ServerUnavailable:
            return None
        if client is not self._client:
            self._client = client
            self._reported.clear()
            self._dependent_search.forget()
            self._answered_paths.clear()
            self._has_analysed_project = False
            self.miss_count = 0
            self.server.fresh_paths.clear()
        return client

    def _send_text(self, client: LanguageClient, path: Path, text: str) -> None:
        language = self.server.choice.row.find_language(path)
        if language is None or len(text) > LSP_FILE_BYTES.value:
            client.close_document(path)
            return
        client.send_text(path, language, text)
        while len(client.documents) > LSP_OPEN_FILES.value:
            client.close_document(next(iter(client.documents)))

    def _reload_changed_files(
        self, client: LanguageClient, skip: frozenset[Path] = frozenset()
    ) -> None:
        """Reload open files that were changed outside codeloop, except the paths in `skip`."""
        for path, document in [each for each in client.documents.items() if each[0] not in skip]:
            current = read_text(path)
            if current is None:
                client.close_document(path)
                self._reported.pop(path, None)
            elif current != document.text:
                self._send_text(client, path, current)

    async def _record_baseline(self, client: LanguageClient, path: Path) -> None:
        """Record a file's current diagnostics, unless diagnostics of the file
        were recorded before.
        """
        if path in self._reported or path not in client.documents:
            return
        # A server that answers pull requests gets more time: it may have to read the
        # project before it answers.
        was_pulling = client.pulls_diagnostics
        seconds = LSP_LATE_DIAGNOSTICS_TIME.seconds if was_pulling else _ASSUME_CLEAN_SECONDS
        current = await client.wait_for_diagnostics(path, seconds)
        # Some servers register only after their start that they answer pull requests.
        if current is None and (
            client.progress.active_work or (client.pulls_diagnostics and not was_pulling)
        ):
            current = await client.wait_for_diagnostics(path, LSP_LATE_DIAGNOSTICS_TIME.seconds)
        may_be_clean = (
            current is None and not client.progress.active_work and not client.pulls_diagnostics
        )
        # Many servers that push diagnostics report nothing on a file without any.
        if may_be_clean and await client.is_responding():
            current = ()
        if current is not None:
            self._reported[path] = current

    def _record_first_reports(self, client: LanguageClient) -> None:
        """Record the first report on a file as the diagnostics before the edit."""
        for path in list(self.server.fresh_paths):
            if (
                path not in self._reported
                and (current := client.find_diagnostics(path)) is not None
            ):
                self._reported[path] = current
                self.server.fresh_paths.discard(path)

    async def _wait_for_diagnostics(
        self, client: LanguageClient, path: Path
    ) -> tuple[Diagnostic, ...] | None:
        """Wait for a file's diagnostics, and return them; None if they don't arrive in time.

        Returns () as soon as another task waits for the server.
        """
        waiting = asyncio.create_task(
            client.wait_for_diagnostics(path, LSP_LATE_DIAGNOSTICS_TIME.seconds)
        )
        hurry = asyncio.create_task(self._hurry_requested.wait())
        try:
            await asyncio.wait({waiting, hurry}, return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else ()
        finally:
            await cancel_all([waiting, hurry])

    async def _wait_until_quiet(self, client: LanguageClient) -> None:
        """Wait until the reports on other files reflect the edits, if there are any,
        or until another task waits.
        """
        until = time.monotonic() + LSP_LATE_DIAGNOSTICS_TIME.seconds
        while (
            not self._waiting_count and not self._has_settled(client) and time.monotonic() < until
        ):
            if not any(
                self._list_unreported(client, path)
                for path in self.server.fresh_paths - self._edited_paths
            ):
                break
            await asyncio.sleep(_BURST_SECONDS)

    def _list_unreported(self, client: LanguageClient, path: Path) -> list[Diagnostic]:
        """Return a file's unreported diagnostics: errors, and warnings if the server's
        configuration asks for them.
        """
        current = client.find_diagnostics(path) or ()
        least_severity = WARNING if self.server.choice.row.warnings else ERROR
        before = self._reported.get(path, () if self._has_analysed_project else current)
        return [
            each
            for each in find_new_diagnostics(before, current)
            if each.severity <= least_severity
        ]

    def _has_settled(self, client: LanguageClient) -> bool:
        """Return whether the reports on other files reflect the edits, and not the state before."""
        if any(
            client.find_diagnostics(path) is None
            for path in self._edited_paths
            if path in client.documents
        ):
            return False
        return (
            client.pulls_diagnostics
            or time.monotonic() >= client.habits.received_at + _SETTLE_SECONDS
        )


async def _collect_diagnostics(client: LanguageClient, paths: Sequence[Path]) -> None:
    """Wait for the diagnostics of open files. Diagnostics that come late are
    part of the next result.
    """
    with suppress(ServerGone):
        await asyncio.gather(
            *(
                client.wait_for_diagnostics(path, LSP_LATE_DIAGNOSTICS_TIME.seconds)
                for path in paths
            )
        )


def _is_idle(client: LanguageClient) -> bool:
    """Return whether the server pushes diagnostics and has been silent for so long
    that all files are analysed.
    """
    silent_seconds = time.monotonic() - max(client.habits.received_at, client.habits.began_at)
    return (
        not client.pulls_diagnostics
        and not client.progress.active_work
        and silent_seconds > _IDLE_SECONDS
    )
