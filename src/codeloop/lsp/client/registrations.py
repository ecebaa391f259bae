"""The capabilities that a server registers while it runs,
and the answers to its requests (settings, folders).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codeloop.kit.glob import compile_glob
from codeloop.kit.jsonc import is_list, is_object
from codeloop.lsp.client.capabilities import make_workspace_folder
from codeloop.lsp.client.file_uri import parse_file_uri
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
# The most registrations and patterns that are kept of one server.
_MAX_ENTRIES = 500


class _Registration(NamedTuple):
    method: str
    options: JSON


class _WatchGlob(NamedTuple):
    base: Path | None
    """The folder that the pattern is relative to; None: any folder."""
    pattern: str


class Registrations:
    """The capabilities that one server has registered.

    `on_change` is called after each change of the registrations.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._registered: dict[str, _Registration] = {}
        """The registrations by their ids."""
        self._globs: list[_WatchGlob] = []

    def make_handlers(
        self, roots: Sequence[Path], answer_setting: Callable[[Any], Any]
    ) -> Mapping[str, Callable[[Any], Any]]:
        """Return the functions that answer a server's requests, by method.
        None changes a file, or asks a user.
        """
        return {
            "workspace/configuration": lambda params: [
                answer_setting(item) for item in _read_list(params, "items")
            ],
            "workspace/workspaceFolders": lambda _params: [
                make_workspace_folder(each) for each in roots
            ],
            "workspace/applyEdit": lambda _params: {
                "applied": False,
                "failureReason": "nobody asked for it",
            },
            "workspace/diagnostic/refresh": lambda _params: None,
            "client/registerCapability": self._register,
            "client/unregisterCapability": self._unregister,
            "window/workDoneProgress/create": lambda _params: None,
            "window/showMessageRequest": lambda _params: None,
        }

    def has_capability(self, capability: str) -> bool:
        """Return whether a capability was registered."""
        method = _METHODS_BY_CAPABILITY.get(capability)
        return any(registration.method == method for registration in self._registered.values())

    def is_watched(self, path: Path) -> bool:
        """Return whether the server watches this file."""
        return any(_matches_glob(glob, path) for glob in self._globs)

    @property
    def watches_files(self) -> bool:
        """Whether the server watches any files."""
        return bool(self._globs)

    def make_pull_options(self, capabilities: Mapping[str, Any]) -> JSON:
        """Make the parameters that pull requests need besides the document: the identifier,
        if there is one.
        """
        options = capabilities.get("diagnosticProvider")
        if not is_object(options):
            method = _METHODS_BY_CAPABILITY["diagnosticProvider"]
            registered_options = (
                each.options for each in self._registered.values() if each.method == method
            )
            options = next(registered_options, dict[str, Any]())
        return {"identifier": options["identifier"]} if options.get("identifier") else {}

    def _register(self, params: Any) -> None:
        for row in _read_list(params, "registrations"):
            if is_object(row) and len(self._registered) < _MAX_ENTRIES:
                options = row.get("registerOptions")
                self._registered[str(row.get("id"))] = _Registration(
                    str(row.get("method")), options if is_object(options) else {}
                )
        self._update_globs()

    def _unregister(self, params: Any) -> None:
        # A typing error of the protocol's own.
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
        globs = (
            _parse_glob(watcher.get("globPattern")) for watcher in watchers if is_object(watcher)
        )
        self._globs = [glob for glob in globs if glob is not None][:_MAX_ENTRIES]
        self._on_change()


def _read_list(params: Any, name: str) -> list[Any]:
    value = params.get(name) if is_object(params) else None
    return value[:_MAX_ENTRIES] if is_list(value) else []


def _parse_glob(value: Any) -> _WatchGlob | None:
    """Return a GlobPattern of the protocol, a text or a RelativePattern; None if it is invalid."""
    if isinstance(value, str):
        return _WatchGlob(None, value)
    if not is_object(value) or not isinstance(value.get("pattern"), str):
        return None
    base = value.get("baseUri")
    folder = parse_file_uri(base.get("uri") if is_object(base) else base)
    return None if folder is None else _WatchGlob(folder, value["pattern"])


def _matches_glob(glob: _WatchGlob, path: Path) -> bool:
    try:
        name = (
            path.as_posix().lstrip("/")
            if glob.base is None
            else path.relative_to(glob.base).as_posix()
        )
        return compile_glob(glob.pattern.lstrip("/")).fullmatch(name) is not None
    # The file is outside the pattern's folder, or the pattern is invalid.
    except ValueError:
        return False
