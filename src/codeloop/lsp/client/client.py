"""A client of one running server: initialisation, document synchronisation, diagnostics of the current text."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from codeloop.kit.jsonc import is_list, is_object
from codeloop.lsp.client.capabilities import initialize_params
from codeloop.lsp.client.connection import LOST, ErrorAnswer, LspConnection, ServerGone, ServerPipes
from codeloop.lsp.client.diagnostic import Diagnostic, diagnostics_of
from codeloop.lsp.client.document import OpenDocument, on_disk
from codeloop.lsp.client.habits import PushHabits
from codeloop.lsp.client.server_requests import Registrations
from codeloop.lsp.client.text import Encoding, change_between, lines_of
from codeloop.lsp.client.tsserver import tsserver_diagnostics
from codeloop.schema.bounds.language import LSP_FILES, LSP_REQUEST, LSP_STOP
from codeloop.schema.wire import JSON

FileEvent = Literal[1, 2, 3]
CREATED, CHANGED, DELETED = 1, 2, 3
_FULL, _INCREMENTAL = 1, 2
_AGAIN = 0.02  # seconds


class ServerSetup(Struct, frozen=True):
    """How a server is initialised: its roots (more may be added later), options, settings.

    `settle`: seconds of silence after which one that names no versions has said everything about a text. `repeats`: so
    has one that names them only then, since it speaks several times of one text. `asked`: how one is asked for
    diagnostics that only sends them by itself.
    """

    roots: list[Path]
    initialization: Any
    settings: JSON
    settle: float
    repeats: bool = False
    asked: Literal["", "tsserver"] = ""


class LanguageClient:
    """The client. `on_diagnostics` is called with the path of a file with new diagnostics."""

    def __init__(self, pipes: ServerPipes, setup: ServerSetup, on_diagnostics: Callable[[Path], None]) -> None:
        self.setup = setup
        self.encoding: Encoding = "utf-16"
        self.documents: dict[Path, OpenDocument] = {}
        self._on_diagnostics = on_diagnostics
        self._others: dict[Path, tuple[float, list[Any]]] = {}
        self._news = asyncio.Event()
        self.registered = Registrations(self._news.set)
        self.habits = PushHabits(setup.settle, repeats=setup.repeats)
        self._can: Mapping[str, Any] = {}
        self.looks_across_files = True
        """Whether one file's diagnostics may depend on another's; linters declare that theirs do not."""
        self.connection = LspConnection(
            pipes, self._on_notification, self.registered.answers(setup.roots, setup.settings)
        )

    async def greet(self, seconds: float) -> None:
        """Initialise the server. Raises ErrorAnswer, ServerGone, TimeoutError."""
        params = initialize_params(self.setup.roots, self.setup.initialization)
        result = await self.connection.request("initialize", params, seconds)
        can = result.get("capabilities") if is_object(result) else None
        self._can = can if is_object(can) else {}
        diagnostic_provider = self._can.get("diagnosticProvider")
        self.looks_across_files = (
            not is_object(diagnostic_provider) or diagnostic_provider.get("interFileDependencies") is not False
        )
        position_encoding = self._can.get("positionEncoding")
        self.encoding = position_encoding if position_encoding in {"utf-8", "utf-16", "utf-32"} else "utf-16"
        self.connection.notify("initialized", {})
        if self.setup.settings:
            self.connection.notify("workspace/didChangeConfiguration", {"settings": self.setup.settings})

    async def shut_down(self) -> None:
        """Ask the server to shut down, then to exit."""
        with suppress(ErrorAnswer, ServerGone, TimeoutError):
            await self.connection.request("shutdown", None, LSP_STOP.seconds)
        self.connection.notify("exit", None)

    def has_capability(self, capability: str) -> bool:
        """Return whether the server has a capability, declared or registered."""
        value = self._can.get(capability)
        return (value is not None and value is not False) or self.registered.has(capability)

    @property
    def pulls(self) -> bool:
        """Return whether diagnostics are pulled."""
        return bool(self.setup.asked) or self.has_capability("diagnosticProvider")

    async def request(self, method: str, params: Any, seconds: float | None = None) -> Any:
        """Return the result of a request, repeated when the server reports that its content changed meanwhile.

        Raises ErrorAnswer, ServerGone, TimeoutError.
        """
        until = time.monotonic() + (LSP_REQUEST.seconds if seconds is None else seconds)
        while True:
            try:
                return await self.connection.request(method, params, max(until - time.monotonic(), 0.001))
            except ErrorAnswer as error:
                if not error.is_outdated or time.monotonic() + _AGAIN > until:
                    raise
            await asyncio.sleep(_AGAIN)

    def sync(self, path: Path, language: str, text: str) -> None:
        """Send the server this text of a file, opening it when it is not open."""
        document = self.documents.pop(path, None)
        if document is None:
            document = OpenDocument(path, language, text, next(self.habits.versions))
            item = {"uri": document.uri, "languageId": language, "version": document.version, "text": text}
            self._others.pop(path, None)
            self._fence(document)
            self._notify("textDocument/didOpen", {"textDocument": item})
        elif document.text != text:
            before = document.text
            document.change(text, next(self.habits.versions), self.habits.pause)
            self._fence(document)
            self._send_change(document, before)
        document.synced_at = time.time()
        self.documents[path] = document  # the one used last is the last

    def close(self, path: Path) -> None:
        """Close a file, dropping its diagnostics."""
        document = self.documents.pop(path, None)
        if document is not None:
            self._notify("textDocument/didClose", {"textDocument": document.identifier})

    def notify_saved(self, path: Path) -> None:
        """Notify the server that an open file was saved."""
        document, sync = self.documents.get(path), self._can.get("textDocumentSync")
        save = sync.get("save") if is_object(sync) else None
        if document is not None and save:
            more = {"text": document.text} if is_object(save) and save.get("includeText") else {}
            self._notify("textDocument/didSave", {"textDocument": document.identifier, **more})

    def notify_changed(self, events: Iterable[tuple[Path, FileEvent]]) -> None:
        """Notify the server of changed files that it has asked to watch."""
        changes = [{"uri": path.as_uri(), "type": event} for path, event in events if self.registered.watches(path)]
        if changes:
            self._notify("workspace/didChangeWatchedFiles", {"changes": changes})

    async def wait_for_diagnostics(self, path: Path, seconds: float) -> tuple[Diagnostic, ...] | None:
        """Wait for diagnostics of the current text; None when none arrive in time."""
        document = self.documents.get(path)
        if document is None:
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.habits.is_fresh(document, pulls=self.pulls):
                    if self.pulls:
                        await self._pull(document)
                    else:
                        await self._wait_push(document)
        return self.find_diagnostics(path)

    def find_diagnostics(self, path: Path) -> tuple[Diagnostic, ...] | None:
        """Return the diagnostics of the current text; None: none yet, or more may follow."""
        document = self.documents.get(path)
        if document is not None:
            return document.diagnostics(self.encoding) if self.habits.is_fresh(document, pulls=self.pulls) else None
        pulled = self._others.get(path)
        return None if pulled is None else diagnostics_of(pulled[1], lines_of(on_disk(path) or ""), self.encoding)

    def is_current(self, path: Path) -> bool:
        """Return whether a file's diagnostics belong to its text on the disk."""
        document, pulled = self.documents.get(path), self._others.get(path)
        try:
            changed_at = path.stat().st_mtime
        except OSError:
            return False
        if document is not None:
            return changed_at <= document.synced_at or on_disk(path) == document.text
        return pulled is not None and changed_at <= pulled[0]

    async def _wait_push(self, document: OpenDocument) -> None:
        """Wait for the next diagnostics, or until the server is quiet. Possibly outdated ones are requested again."""
        self._news.clear()
        if document.doubt and document.is_quiet(self.habits.pause):
            document.ask_again(next(self.habits.versions))
            self._fence(document)
            self._send_change(document, None)
        seconds_left = self.habits.seconds_left(document)
        if self.connection.lost:
            raise ServerGone(self.connection.lost)
        with suppress(TimeoutError):
            async with asyncio.timeout(None if seconds_left is None else max(seconds_left, 0.001)):
                await self._news.wait()

    async def _pull(self, document: OpenDocument) -> None:
        """Pull a file's diagnostics; an answer about an older version is dropped."""
        version = document.version
        try:
            if self.setup.asked:
                report: Any = {"items": await tsserver_diagnostics(self.request, document.path)}
            else:
                params = {"textDocument": document.identifier, **self.registered.pull_options(self._can)}
                params |= {"previousResultId": document.result} if document.result is not None else {}
                report = await self.connection.request("textDocument/diagnostic", params, LSP_REQUEST.seconds)
        except ErrorAnswer:
            report = None  # cancelled by the server, since something changed
        if version != document.version or not is_object(report):
            await asyncio.sleep(_AGAIN)
            return
        if report.get("kind") != "unchanged":
            items = report.get("items")
            document.last = items if is_list(items) else []
        document.result = report.get("resultId")
        document.pulled = document.last
        self._on_diagnostics(document.path)

    def _fence(self, document: OpenDocument) -> None:
        """Detect when the server has processed all messages before a version, unless it reports versions anyway."""
        if self.habits.names_versions or self.pulls:
            return
        version = document.version

        def mark_fenced() -> None:
            document.is_fenced = document.is_fenced or document.version == version

        self.connection.fence(mark_fenced)

    def _send_change(self, document: OpenDocument, before: str | None) -> None:
        """Send what changed since `before`; None: all of the text."""
        sync = self._can.get("textDocumentSync")
        kind = sync.get("change") if is_object(sync) else sync
        if kind not in {_FULL, _INCREMENTAL}:
            return
        change = (
            change_between(before, document.text, self.encoding).event
            if kind == _INCREMENTAL and before is not None
            else {"text": document.text}
        )
        identifier = {**document.identifier, "version": document.version}
        self._notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})

    def _notify(self, method: str, params: JSON) -> None:
        self.habits.sent_at = time.monotonic()
        self.connection.notify(method, params)

    def _on_notification(self, method: str, params: Any) -> None:
        if method == "textDocument/publishDiagnostics" and is_object(params):
            self._take_diagnostics(params)
        elif method == "$/progress" and is_object(params):
            self.registered.progress(params)
            self.habits.note_work(is_working=bool(self.registered.work))
            self._news.set()
        elif method == "tsserver/request" and is_list(params):
            # Vue's server asks an editor's own tsserver about types: there is none, so it does without.
            for request in params:
                if is_list(request) and request:
                    self.connection.notify("tsserver/response", [[request[0], None]])
        elif method == LOST:
            self._news.set()

    def _take_diagnostics(self, params: JSON) -> None:
        path, items, version = path_of(params.get("uri")), params.get("diagnostics"), params.get("version")
        if path is None or not is_list(items):
            return
        document = self.documents.get(path)
        self.habits.heard_at = time.monotonic()
        if isinstance(version, int):
            self.habits.names_versions = True
        if document is None:
            if path in self._others or len(self._others) < LSP_FILES.value:
                self._others[path] = (time.time(), items)
        elif version == document.version or (version is None and document.is_fenced):
            self.habits.lengthen_pause(document)
            document.push(items)
        else:
            return  # about an outdated text
        self._news.set()
        self._on_diagnostics(path)


def path_of(uri: Any) -> Path | None:
    """Return the file of a URI, or None."""
    if not isinstance(uri, str) or not uri.startswith("file:"):
        return None
    try:
        path = Path(unquote(urlsplit(uri).path))
    except ValueError:
        return None
    return path if path.is_absolute() and "\0" not in str(path) else None
