"""What we send with `initialize`: the capabilities that we use, and the roots."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codeloop import __version__
from codeloop.schema.wire import JSON

_SYMBOL_KINDS = list(range(1, 27))
CAPABILITIES: JSON = {
    "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "applyEdit": False,
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "diagnostics": {"refreshSupport": True},
        "symbol": {"symbolKind": {"valueSet": _SYMBOL_KINDS}},
        "workspaceEdit": {"documentChanges": True},
    },
    "textDocument": {
        "synchronization": {"didSave": True, "dynamicRegistration": True},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": False},
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
        "definition": {"linkSupport": True},
        "typeDefinition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True, "symbolKind": {"valueSet": _SYMBOL_KINDS}},
        "callHierarchy": {},
        "typeHierarchy": {},
        "rename": {"prepareSupport": False},
    },
}


def make_workspace_folder(root: Path) -> JSON:
    """Return a root as a `WorkspaceFolder`."""
    return {"uri": root.as_uri(), "name": root.name or os.sep}


def make_initialize_params(roots: Sequence[Path], initialization: Any) -> JSON:
    """Return the parameters of `initialize`. No process id: in a sandbox it would mean another process, or none."""
    root = roots[0]
    return {
        "processId": None,
        "clientInfo": {"name": "codeloop", "version": __version__},
        "rootUri": root.as_uri(),
        "rootPath": str(root),
        "workspaceFolders": [make_workspace_folder(each) for each in roots],
        "capabilities": CAPABILITIES,
        "initializationOptions": initialization,
        "trace": "off",
    }
