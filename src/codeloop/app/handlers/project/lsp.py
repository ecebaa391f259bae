"""Handlers of language servers: their states, and a search for symbols."""

import asyncio

from codeloop.app.handlers import handles
from codeloop.app.project import Project
from codeloop.lsp.client.connection import ErrorAnswer, ServerGone
from codeloop.lsp.diagnostics_tracker import DiagnosticsTracker
from codeloop.lsp.symbols import find_workspace_symbols
from codeloop.schema import operation
from codeloop.schema.api.files import FindSymbols, Symbol
from codeloop.schema.api.project import LSPStatus
from codeloop.schema.operation import NoArguments

_MAX_SYMBOLS = 10
"""Symbols of one server in an answer, as in OpenCode's API."""
_SYMBOL_KINDS = (5, 6, 10, 11, 12, 13, 14, 23)
"""Classes, methods, enums, interfaces, functions, variables, constants, structs."""


def _list_running(project: Project) -> list[DiagnosticsTracker]:
    languages = project.services.running_languages
    return list(languages.trackers.values()) if languages is not None else []


@handles(operation.LSP_STATUS)
async def list_servers(project: Project, _args: NoArguments) -> list[LSPStatus]:
    """Return the servers that run, and those that failed for good."""
    rows = [(tracker.server, project.workspace.relative(tracker.server.root)) for tracker in _list_running(project)]
    return [
        LSPStatus(
            id=server.name,
            name=server.name,
            root=root,
            status="connected" if server.state == "connected" else "error",
            error=server.failure_reason if server.state == "failed" else None,
        )
        for server, root in rows
        if server.state in {"connected", "failed"}
    ]


@handles(operation.FIND_SYMBOLS)
async def find_symbols(project: Project, args: FindSymbols) -> list[Symbol]:
    """Return the symbols that running servers find for a query; servers that fail are left out."""
    clients = [tracker.server.client for tracker in _list_running(project)]
    able = [client for client in clients if client is not None and client.has_capability("workspaceSymbolProvider")]
    results = await asyncio.gather(
        *(find_workspace_symbols(client, args.query) for client in able), return_exceptions=True
    )
    rows: list[Symbol] = []
    for answer in results:
        if isinstance(answer, BaseException):
            if not isinstance(answer, ErrorAnswer | ServerGone | TimeoutError):
                raise answer
            continue
        fitting = [row for row, _ in answer if row.get("kind") in _SYMBOL_KINDS][:_MAX_SYMBOLS]
        rows += [Symbol(name=str(row.get("name")), kind=int(row["kind"]), location=row["location"]) for row in fitting]
    return rows
