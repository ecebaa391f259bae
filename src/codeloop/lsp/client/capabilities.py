"""The parameters of the request `initialize`: the capabilities that the client has,
and the project's roots.
"""

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
        "documentSymbol": {
            "hierarchicalDocumentSymbolSupport": True,
            "symbolKind": {"valueSet": _SYMBOL_KINDS},
        },
        "callHierarchy": {},
        "typeHierarchy": {},
        "rename": {"prepareSupport": False},
    },
}


def make_workspace_folder(root: Path) -> JSON:
    """Make the `WorkspaceFolder` of a root."""
    return {"uri": root.as_uri(), "name": root.name or os.sep}


def make_initialize_params(roots: Sequence[Path], initialization: Any) -> JSON:
    """Make the parameters of `initialize`."""
    root = roots[0]
    return {
        # A server ends when this process is gone. In a sandbox the id would mean another process,
        # or none.
        "processId": None,
        "clientInfo": {"name": "codeloop", "version": __version__},
        "rootUri": root.as_uri(),
        "rootPath": str(root),
        "workspaceFolders": [make_workspace_folder(each) for each in roots],
        "capabilities": CAPABILITIES,
        "initializationOptions": initialization,
        "trace": "off",
    }
