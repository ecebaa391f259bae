"""The registrations and progress of one server, and the answers to its requests (settings, folders, registrations)."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from codeloop.kit.glob import compile_glob
from codeloop.kit.jsonc import is_list, is_object
from codeloop.lsp.client.capabilities import make_workspace_folder
from codeloop.schema.wire import JSON

_METHODS_BY_CAPABILITY = {
    "diagnosticProvider": "textDocument/diagnostic",
    "definitionProvider": "textDocument/definition",
    "typeDefinitionProvider": "textDocument/typeDefinition",
    "referencesProvider": "textDocument/references",
    "implementationProvider": "textDocument/implementation",
    "hoverProvider": "textDocument/hover",
    "documentSymbolProvider": "textDocument/documentSymbol",
    "workspaceSymbolProvider": "workspace/symbol",
    "callHierarchyProvider": "textDocument/prepareCallHierarchy",
    "typeHierarchyProvider": "textDocument/prepareTypeHierarchy",
    "renameProvider": "textDocument/rename",
}
_WATCH_METHOD = "workspace/didChangeWatchedFiles"
# The time after its start within which a server that analyses the project begins to.
_START_OF_WORK_SECONDS = 3.0
# The limit of registrations, of patterns and of tasks that are kept of one server.
_MAX_ENTRIES = 500


class Registrations:
    """The capabilities that one server has registered. `active_work`: the tasks that it has begun and not ended.

    `on_change` is called after each change of the registrations.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._started_at = time.monotonic()
        self._progressed = asyncio.Event()
        self.active_work: set[str] = set()
        self._registered: dict[str, tuple[str, JSON]] = {}
        self._globs: list[tuple[Path | None, str]] = []

    def make_handlers(self, roots: Sequence[Path], settings: JSON) -> Mapping[str, Callable[[Any], Any]]:
        """Return the answers to a server's requests, by method. None of them changes a file, or asks a user."""
        return {
            "workspace/configuration": lambda params: [
                find_section(settings, item) for item in _read_list(params, "items")
            ],
            "workspace/workspaceFolders": lambda _params: [make_workspace_folder(each) for each in roots],
            "workspace/applyEdit": lambda _params: {"applied": False, "failureReason": "nobody asked for it"},
            "workspace/diagnostic/refresh": lambda _params: None,
            "client/registerCapability": self._register,
            "client/unregisterCapability": self._unregister,
            "window/workDoneProgress/create": lambda _params: None,
            "window/showMessageRequest": lambda _params: None,
        }

    def has_capability(self, capability: str) -> bool:
        """Return whether a capability was registered."""
        method = _METHODS_BY_CAPABILITY.get(capability)
        return any(row[0] == method for row in self._registered.values())

    def is_watched(self, path: Path) -> bool:
        """Return whether the server watches this file."""
        return any(_matches_glob(base, pattern, path) for base, pattern in self._globs)

    @property
    def watches_files(self) -> bool:
        """Whether the server watches any files."""
        return bool(self._globs)

    def make_pull_options(self, capabilities: Mapping[str, Any]) -> JSON:
        """Make the parameters that pull requests need besides the document: the identifier, if there is one."""
        diagnostic_provider = capabilities.get("diagnosticProvider")
        rows = (
            options
            for method, options in self._registered.values()
            if method == _METHODS_BY_CAPABILITY["diagnosticProvider"]
        )
        registered_options: JSON = next(rows, dict[str, Any]())
        options = diagnostic_provider if is_object(diagnostic_provider) else registered_options
        return {"identifier": options["identifier"]} if options.get("identifier") else {}

    async def wait_for_work(self, seconds: float) -> bool:
        """Wait until the server has ended its reported work; return whether it had any.

        A server that was started just now gets a moment to begin: it would answer from the few files it has read.
        """
        begins = min(self._started_at + _START_OF_WORK_SECONDS - time.monotonic(), seconds)
        await self._wait_until(lambda: bool(self.active_work), begins)
        had_work = bool(self.active_work)
        await self._wait_until(lambda: not self.active_work, seconds)
        return had_work

    async def _wait_until(self, is_done: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0)):
                while not is_done():
                    self._progressed.clear()
                    await self._progressed.wait()

    def record_progress(self, params: JSON) -> None:
        """Record that a piece of work began or ended."""
        token, value = str(params.get("token")), params.get("value")
        kind = value.get("kind") if is_object(value) else None
        if kind == "begin" and len(self.active_work) < _MAX_ENTRIES:
            self.active_work.add(token)
        elif kind == "end":
            self.active_work.discard(token)
        self._progressed.set()

    def _register(self, params: Any) -> None:
        for row in _read_list(params, "registrations"):
            if is_object(row) and len(self._registered) < _MAX_ENTRIES:
                options = row.get("registerOptions")
                self._registered[str(row.get("id"))] = (str(row.get("method")), options if is_object(options) else {})
        self._update_globs()

    def _unregister(self, params: Any) -> None:
        # The protocol spells it so.
        for row in _read_list(params, "unregisterations"):
            if is_object(row):
                self._registered.pop(str(row.get("id")), None)
        self._update_globs()

    def _update_globs(self) -> None:
        watchers = (
            watcher
            for method, options in self._registered.values()
            if method == _WATCH_METHOD
            for watcher in _read_list(options, "watchers")
        )
        globs = (_parse_glob(watcher.get("globPattern")) for watcher in watchers if is_object(watcher))
        self._globs = [glob for glob in globs if glob is not None][:_MAX_ENTRIES]
        self._on_change()


def find_section(settings: JSON, item: Any) -> Any:
    """Return the section of the settings that a server asks for; all settings if it names no section."""
    section = item.get("section") if is_object(item) else None
    value: Any = settings
    for name in str(section).split(".") if section else ():
        value = value.get(name) if is_object(value) else None
    return value


def _read_list(params: Any, name: str) -> list[Any]:
    value = params.get(name) if is_object(params) else None
    return value[:_MAX_ENTRIES] if is_list(value) else []


def _parse_glob(value: Any) -> tuple[Path | None, str] | None:
    """Return the folder that a pattern is relative to (None: any folder) and the pattern; None if it is invalid."""
    if isinstance(value, str):
        return None, value
    if not is_object(value) or not isinstance(value.get("pattern"), str):
        return None
    base = value.get("baseUri")
    uri = base.get("uri") if is_object(base) else base
    return (Path(uri.removeprefix("file://")), value["pattern"]) if isinstance(uri, str) else None


def _matches_glob(base: Path | None, pattern: str, path: Path) -> bool:
    try:
        name = path.as_posix().lstrip("/") if base is None else path.relative_to(base).as_posix()
        return compile_glob(pattern.lstrip("/")).fullmatch(name) is not None
    except ValueError:
        return False
