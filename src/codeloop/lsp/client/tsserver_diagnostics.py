"""Requests diagnostics from typescript-language-server, which pushes them late and without versions."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from codeloop.kit.jsonc import is_list, is_object
from codeloop.lsp.client.diagnostic import ERROR, WARNING
from codeloop.schema.wire import JSON

_COMMANDS = ("syntacticDiagnosticsSync", "semanticDiagnosticsSync")
_SEVERITIES = {"error": ERROR, "warning": WARNING}
_HINT_SEVERITY = 4


async def request_tsserver_diagnostics(request: Callable[[str, Any], Awaitable[Any]], path: Path) -> list[JSON]:
    """Return the diagnostics of an open file in the protocol's form. Raises the errors of a request."""
    rows: list[JSON] = []
    for answer in await asyncio.gather(
        *(request("workspace/executeCommand", _make_command(kind, path)) for kind in _COMMANDS)
    ):
        body = answer.get("body") if is_object(answer) else None
        rows += [_to_lsp_diagnostic(row) for row in body if is_object(row)] if is_list(body) else []
    return rows


def _make_command(kind: str, path: Path) -> JSON:
    return {"command": "typescript.tsserverRequest", "arguments": [kind, {"file": str(path)}]}


def _to_lsp_diagnostic(row: JSON) -> JSON:
    return {
        "range": {name: _to_lsp_position(row.get(name)) for name in ("start", "end")},
        "severity": _SEVERITIES.get(str(row.get("category")), _HINT_SEVERITY),
        "code": row.get("code"),
        "source": "typescript",
        "message": row.get("text"),
    }


def _to_lsp_position(position: Any) -> JSON:
    """Convert a position of tsserver, which counts from 1, to one of the protocol, which counts from 0."""
    data: JSON = position if is_object(position) else {}
    return {"line": data.get("line", 1) - 1, "character": data.get("offset", 1) - 1}
