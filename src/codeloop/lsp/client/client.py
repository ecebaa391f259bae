"""A client of one running server: initialisation, document synchronisation,
diagnostics of the current text.

A server that pushes diagnostics without naming the version of the text leaves open which text they
are about. The client finds out with fences: requests that the server refuses once it has
read all messages before them.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from codeloop.kit.jsonc import is_list, is_object
from codeloop.kit.program import Program
from codeloop.lsp.client.capabilities import make_initialize_params
from codeloop.lsp.client.connection import (
    CONNECTION_LOST,
    FENCE_METHOD,
    ErrorAnswer,
    LspConnection,
    ServerGone,
)
from codeloop.lsp.client.diagnostic import Diagnostic, parse_diagnostics
from codeloop.lsp.client.document import OpenDocument, read_text
from codeloop.lsp.client.file_uri import parse_file_uri
from codeloop.lsp.client.push_habits import PushHabits
from codeloop.lsp.client.registrations import Registrations
from codeloop.lsp.client.server_settings import ServerSettings
from codeloop.lsp.client.text_positions import Encoding, find_change, split_lines
from codeloop.lsp.client.work_progress import WorkProgress
from codeloop.schema.bounds.language_tools import LSP_DIAGNOSED_FILES, LSP_REQUEST, LSP_STOP
from codeloop.schema.wire import JSON

FileEvent = Literal[1, 2, 3]
CREATED, CHANGED, DELETED = 1, 2, 3
_FULL_SYNC, _INCREMENTAL_SYNC = 1, 2
# The pause before a request is repeated, most often because a text had changed meanwhile.
_RETRY_SECONDS = 0.02


class ServerSetup(Struct, frozen=True):
    """The values that a server is initialised with: its roots (more may be added later), options,
    settings.

    `settle_seconds`: after so long a silence the diagnostics of a server that names
    no versions are complete.
    `repeats_reports`: this also holds for a server that names versions,
    since it reports several times on one text.
    `pull_method`: how to request diagnostics from a server that lacks the protocol's pull request.
    """

    roots: list[Path]
    initialization: Any
    settings: ServerSettings
    settle_seconds: float
    repeats_reports: bool = False
    pull_method: Literal["", "tsserver"] = ""


class _ClosedFileReport(NamedTuple):
    received_at: float
    """Wall clock."""
    items: list[Any]
    """The diagnostics, as the server sent them."""


class LanguageClient:
    """A client. `on_diagnostics` is called with the path of each file that the server reports on.

    `documents`: the open files, the one used last at the end.
    """

    def __init__(
        self, pipes: Program, setup: ServerSetup, on_diagnostics: Callable[[Path], None]
    ) -> None:
        self.setup = setup
        self.encoding: Encoding = "utf-16"
        self.documents: dict[Path, OpenDocument] = {}
        self._on_diagnostics = on_diagnostics
        self._closed_file_reports: dict[Path, _ClosedFileReport] = {}
        """The last reports on files that are not open."""
        self._diagnostics_changed = asyncio.Event()
        self.registrations = Registrations(self._diagnostics_changed.set)
        self.progress = WorkProgress()
        self.habits = PushHabits(setup.settle_seconds, repeats_reports=setup.repeats_reports)
        self._capabilities: Mapping[str, Any] = {}
        self.looks_across_files = True
        """Whether one file's diagnostics may depend on another's;
        linters declare that theirs do not.
        """
        self.connection = LspConnection(
            pipes,
            self._on_notification,
            self.registrations.make_handlers(setup.roots, self._answer_setting),
        )

    async def initialize(self, seconds: float) -> None:
        """Initialise the server. Raises ErrorAnswer, ServerGone, TimeoutError."""
        params = make_initialize_params(self.setup.roots, self.setup.initialization)
        result = await self.connection.request("initialize", params, seconds)
        declared = result.get("capabilities") if is_object(result) else None
        self._capabilities = declared if is_object(declared) else {}
        diagnostic_provider = self._capabilities.get("diagnosticProvider")
        self.looks_across_files = (
            not is_object(diagnostic_provider)
            or diagnostic_provider.get("interFileDependencies") is not False
        )
        position_encoding = self._capabilities.get("positionEncoding")
        self.encoding = (
            position_encoding if position_encoding in {"utf-8", "utf-16", "utf-32"} else "utf-16"
        )
        self.connection.notify("initialized", {})
        # Before that it could neither analyse the project nor report on a file,
        # however long it took to start.
        self.progress.started_at = self.habits.began_at = time.monotonic()
        if settings := self.setup.settings.list_all(self.setup.roots[0]):
            self.connection.notify("workspace/didChangeConfiguration", {"settings": settings})

    def _answer_setting(self, item: Any) -> Any:
        return self.setup.settings.answer(item, self.setup.roots[0])

    async def shut_down(self) -> None:
        """Ask the server to shut down, then to exit."""
        with suppress(ErrorAnswer, ServerGone, TimeoutError):
            await self.connection.request("shutdown", None, LSP_STOP.seconds)
        self.connection.notify("exit", None)

    def has_capability(self, capability: str) -> bool:
        """Return whether the server has a capability, declared or registered."""
        value = self._capabilities.get(capability)
        return (value is not None and value is not False) or self.registrations.has_capability(
            capability
        )

    @property
    def pulls_diagnostics(self) -> bool:
        """Whether diagnostics are requested (pulled),
        rather than sent by the server when it likes (pushed).
        """
        return bool(self.setup.pull_method) or self.has_capability("diagnosticProvider")

    async def request(self, method: str, params: Any, seconds: float | None = None) -> Any:
        """Return the result of a request, which is repeated while the server reports
        that its content has changed.

        Raises ErrorAnswer, ServerGone, TimeoutError.
        """
        until = time.monotonic() + (LSP_REQUEST.seconds if seconds is None else seconds)
        while True:
            try:
                return await self.connection.request(
                    method, params, max(until - time.monotonic(), 0.001)
                )
            except ErrorAnswer as error:
                if not error.is_outdated or time.monotonic() + _RETRY_SECONDS > until:
                    raise
            await asyncio.sleep(_RETRY_SECONDS)

    async def is_responding(self) -> bool:
        """Return whether the server responds.
        An error counts: the method is one that no server knows.
        """
        try:
            await self.request(FENCE_METHOD, {}, LSP_REQUEST.seconds)
        except ErrorAnswer:
            return True
        except (ServerGone, TimeoutError):
            return False
        return True

    def send_text(self, path: Path, language: str, text: str) -> None:
        """Send the server the text of a file, which is opened if it is not open."""
        document = self.documents.pop(path, None)
        if document is None:
            document = OpenDocument(path, language, text, next(self.habits.versions))
            item = {
                "uri": document.uri,
                "languageId": language,
                "version": document.version,
                "text": text,
            }
            self._closed_file_reports.pop(path, None)
            self._fence(document)
            self._notify("textDocument/didOpen", {"textDocument": item})
        elif document.text != text:
            before = document.text
            document.change(
                text, next(self.habits.versions), has_settled=self.habits.has_settled(document)
            )
            self._fence(document)
            self._send_change(document, before)
        document.synced_at = time.time()
        self.documents[path] = document

    def close_document(self, path: Path) -> None:
        """Close a file and drop its diagnostics."""
        document = self.documents.pop(path, None)
        if document is not None:
            self._notify("textDocument/didClose", {"textDocument": document.identifier})

    def notify_saved(self, path: Path) -> None:
        """Notify the server that an open file was saved."""
        document, sync = self.documents.get(path), self._capabilities.get("textDocumentSync")
        save = sync.get("save") if is_object(sync) else None
        if document is not None and save:
            extra_params = (
                {"text": document.text} if is_object(save) and save.get("includeText") else {}
            )
            self._notify(
                "textDocument/didSave", {"textDocument": document.identifier, **extra_params}
            )

    def notify_changed(self, events: Iterable[tuple[Path, FileEvent]]) -> None:
        """Notify the server of changes on the disk, of those files that it watches."""
        changes = [
            {"uri": path.as_uri(), "type": event}
            for path, event in events
            if self.registrations.is_watched(path)
        ]
        if changes:
            self._notify("workspace/didChangeWatchedFiles", {"changes": changes})

    async def wait_for_diagnostics(
        self, path: Path, seconds: float
    ) -> tuple[Diagnostic, ...] | None:
        """Wait for the diagnostics of the current text, and return them;
        None if they do not arrive in time.
        """
        document = self.documents.get(path)
        if document is None:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.habits.has_all_diagnostics(document, pulls=self.pulls_diagnostics):
                    if self.pulls_diagnostics:
                        await self._pull(document)
                    else:
                        await self._wait_for_push(document)
        return self.find_diagnostics(path)

    def find_diagnostics(self, path: Path) -> tuple[Diagnostic, ...] | None:
        """Return the diagnostics of the current text; None: none yet, or more may follow."""
        document = self.documents.get(path)
        if document is not None:
            has_all_diagnostics = self.habits.has_all_diagnostics(
                document, pulls=self.pulls_diagnostics
            )
            return document.list_diagnostics(self.encoding) if has_all_diagnostics else None
        report = self._closed_file_reports.get(path)
        if report is None:
            return None
        return parse_diagnostics(report.items, split_lines(read_text(path) or ""), self.encoding)

    def is_current(self, path: Path) -> bool:
        """Return whether a file's diagnostics belong to its text on the disk."""
        document, report = self.documents.get(path), self._closed_file_reports.get(path)
        try:
            changed_at = path.stat().st_mtime
        except OSError:
            return False
        if document is not None:
            return changed_at <= document.synced_at or read_text(path) == document.text
        return report is not None and changed_at <= report.received_at

    async def _wait_for_push(self, document: OpenDocument) -> None:
        """Wait for the next diagnostics, or until the server is quiet.

        If those that arrived may be about an older text, the text is first sent again,
        for the server to report anew.
        """
        self._diagnostics_changed.clear()
        if document.older_text_count and document.is_quiet(self.habits.pause):
            document.resend(next(self.habits.versions))
            self._fence(document)
            self._send_change(document, None)
        seconds_left = self.habits.measure_seconds_left(document)
        if self.connection.loss_reason:
            raise ServerGone(self.connection.loss_reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(None if seconds_left is None else max(seconds_left, 0.001)):
                await self._diagnostics_changed.wait()

    async def _pull(self, document: OpenDocument) -> None:
        """Request a file's diagnostics; an answer about an older version is dropped."""
        version = document.version
        try:
            if self.setup.pull_method:
                # Imported late: only servers that wrap tsserver need it.
                from codeloop.lsp.client.tsserver_diagnostics import request_tsserver_diagnostics

                report: Any = {
                    "items": await request_tsserver_diagnostics(self.request, document.path)
                }
            else:
                params = {
                    "textDocument": document.identifier,
                    **self.registrations.make_pull_options(self._capabilities),
                }
                params |= (
                    {"previousResultId": document.result_id}
                    if document.result_id is not None
                    else {}
                )
                report = await self.connection.request(
                    "textDocument/diagnostic", params, LSP_REQUEST.seconds
                )
        except ErrorAnswer:
            # Most often the server has cancelled the request, since something changed.
            report = None
        # After an error, or if the text has changed meanwhile,
        # the loop in `wait_for_diagnostics` pulls again.
        if version != document.version or not is_object(report):
            await asyncio.sleep(_RETRY_SECONDS)
            return
        if report.get("kind") != "unchanged":
            items = report.get("items")
            document.last_report = items if is_list(items) else []
        document.result_id = report.get("resultId")
        document.pulled = document.last_report
        self._on_diagnostics(document.path)

    def _fence(self, document: OpenDocument) -> None:
        """Detect when the server has processed all messages before a version,
        unless it reports versions anyway.
        """
        if self.habits.names_versions or self.pulls_diagnostics:
            return
        version = document.version

        def mark_fenced() -> None:
            document.is_fenced = document.is_fenced or document.version == version

        self.connection.fence(mark_fenced)

    def _send_change(self, document: OpenDocument, before: str | None) -> None:
        """Send the change since the text `before`; with None, the whole text."""
        sync = self._capabilities.get("textDocumentSync")
        sync_kind = sync.get("change") if is_object(sync) else sync
        if sync_kind not in {_FULL_SYNC, _INCREMENTAL_SYNC}:
            return
        change = (
            find_change(before, document.text, self.encoding).event
            if sync_kind == _INCREMENTAL_SYNC and before is not None
            else {"text": document.text}
        )
        identifier = {**document.identifier, "version": document.version}
        self._notify(
            "textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]}
        )

    def _notify(self, method: str, params: JSON) -> None:
        self.habits.sent_at = time.monotonic()
        self.connection.notify(method, params)

    def _on_notification(self, method: str, params: Any) -> None:
        if method == "textDocument/publishDiagnostics" and is_object(params):
            self._handle_report(params)
        elif method == "$/progress" and is_object(params):
            self.progress.record(params)
            self.habits.record_work(is_working=bool(self.progress.active_work))
            self._diagnostics_changed.set()
        elif method == "tsserver/request" and is_list(params):
            # Vue's server asks an editor's own tsserver about types: there is none,
            # so it does without.
            for request in params:
                if is_list(request) and request:
                    self.connection.notify("tsserver/response", [[request[0], None]])
        elif method == CONNECTION_LOST:
            self._diagnostics_changed.set()

    def _handle_report(self, params: JSON) -> None:
        path, items, version = (
            parse_file_uri(params.get("uri")),
            params.get("diagnostics"),
            params.get("version"),
        )
        if path is None or not is_list(items):
            return
        document = self.documents.get(path)
        self.habits.received_at = time.monotonic()
        if isinstance(version, int):
            self.habits.names_versions = True
        if document is None:
            # A server may report on every file of a large project.
            if (
                path in self._closed_file_reports
                or len(self._closed_file_reports) < LSP_DIAGNOSED_FILES.value
            ):
                self._closed_file_reports[path] = _ClosedFileReport(time.time(), items)
        elif version == document.version or (version is None and document.is_fenced):
            self.habits.learn_pause(document)
            document.record_push(items)
        else:
            # The report is about an outdated text.
            return
        self._diagnostics_changed.set()
        self._on_diagnostics(path)
