"""Handlers of language servers: list their states, and search symbols in the project."""

import asyncio

from codeloop.app.project import Project
from codeloop.lsp.client.connection import ErrorAnswer, ServerGone
from codeloop.lsp.server import LanguageServer
from codeloop.lsp.symbols import find_workspace_symbols
from codeloop.schema.api.files import FindSymbols, Symbol
from codeloop.schema.api.project import LSPStatus
from codeloop.schema.operation import NoArguments

_MAX_SYMBOLS = 10
"""The symbols of each server in an answer, as in OpenCode's API."""
_SYMBOL_KINDS = (5, 6, 10, 11, 12, 13, 14, 23)
"""`SymbolKind`s of the protocol: class, method, enum, interface, function, variable, constant,
struct.
"""


def _list_loaded_servers(project: Project) -> list[LanguageServer]:
    """Return the servers that an edit or a question has needed so far; none is started by this."""
    languages = project.services.running_languages
    return [each.server for each in languages.trackers.values()] if languages is not None else []


async def list_servers(project: Project, _args: NoArguments) -> list[LSPStatus]:
    """Return the connected servers, and those that failed and are not started again."""
    return [
        LSPStatus(
            id=server.name,
            name=server.name,
            root=project.workspace.format_for_user(server.root),
            status="connected" if server.state == "connected" else "error",
            error=server.failure_reason if server.state == "failed" else None,
        )
        for server in _list_loaded_servers(project)
        if server.state in {"connected", "failed"}
    ]


async def find_symbols(project: Project, args: FindSymbols) -> list[Symbol]:
    """Return the symbols that running servers find for a query; servers that fail are left out."""
    clients = [server.client for server in _list_loaded_servers(project)]
    capable_clients = [
        client
        for client in clients
        if client is not None and client.has_capability("workspaceSymbolProvider")
    ]
    results = await asyncio.gather(
        *(find_workspace_symbols(client, args.query) for client in capable_clients),
        return_exceptions=True,
    )
    symbols: list[Symbol] = []
    for result in results:
        if isinstance(result, BaseException):
            # `gather` returns all errors, including those of bugs, which must not be hidden.
            if not isinstance(result, ErrorAnswer | ServerGone | TimeoutError):
                raise result
            continue
        rows = [row for row, _ in result if row.get("kind") in _SYMBOL_KINDS][:_MAX_SYMBOLS]
        symbols += [
            Symbol(name=str(row.get("name")), kind=int(row["kind"]), location=row["location"])
            for row in rows
        ]
    return symbols
