"""Requests the diagnostics of a file from tsserver, which has commands of its own for that."""

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


async def request_tsserver_diagnostics(
    request: Callable[[str, Any], Awaitable[Any]], path: Path
) -> list[JSON]:
    """Return the diagnostics of an open file in the protocol's form.
    Raises the errors of a request.
    """
    answers = await asyncio.gather(
        *(request("workspace/executeCommand", _make_command(name, path)) for name in _COMMANDS)
    )
    diagnostics: list[JSON] = []
    for answer in answers:
        body = answer.get("body") if is_object(answer) else None
        if is_list(body):
            diagnostics += [_to_lsp_diagnostic(item) for item in body if is_object(item)]
    return diagnostics


def _make_command(name: str, path: Path) -> JSON:
    return {"command": "typescript.tsserverRequest", "arguments": [name, {"file": str(path)}]}


def _to_lsp_diagnostic(item: JSON) -> JSON:
    return {
        "range": {name: _to_lsp_position(item.get(name)) for name in ("start", "end")},
        "severity": _SEVERITIES.get(str(item.get("category")), _HINT_SEVERITY),
        "code": item.get("code"),
        "source": "typescript",
        "message": item.get("text"),
    }


def _to_lsp_position(position: Any) -> JSON:
    """Convert a position of tsserver, which counts from 1, to one of the protocol,
    which counts from 0.
    """
    fields: JSON = position if is_object(position) else {}
    return {"line": fields.get("line", 1) - 1, "character": fields.get("offset", 1) - 1}
