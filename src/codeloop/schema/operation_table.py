"""All operations: the rows of `schema/api/`, for routes, the OpenAPI document,
and callers that know only an id.

Who calls an operation imports its row from `schema/api/`,
and loads the structs of that resource only.
"""

from types import ModuleType

from codeloop.schema.api import (
    agents,
    answers,
    client_tools,
    config,
    files,
    jobs,
    mcp,
    process,
    project,
    providers,
    pty,
    server_operations,
    session_inputs,
    session_messages,
    session_reports,
    session_requests,
    session_search,
    session_undo,
    tui,
    unsupported,
    worktrees,
)
from codeloop.schema.operation import AnyOperation, Operation


def _list_rows(*modules: ModuleType) -> tuple[AnyOperation, ...]:
    rows: list[AnyOperation] = [
        row for each in modules for row in vars(each).values() if isinstance(row, Operation)
    ]
    # `/session/{sessionID}` matches `/session/status` too, so a fixed path stands before it.
    return tuple(
        sorted(rows, key=lambda row: [segment.startswith("{") for segment in row.path.split("/")])
    )


OPERATIONS = _list_rows(
    session_requests,
    session_search,
    session_reports,
    session_messages,
    session_inputs,
    session_undo,
    jobs,
    client_tools,
    answers,
    agents,
    project,
    config,
    providers,
    mcp,
    files,
    pty,
    tui,
    process,
)
"""Operations that every client may request, extensions too.
If the paths of two match a request, the first counts.
"""
SERVER_OPERATIONS = _list_rows(server_operations, worktrees, unsupported)
"""Further operations, for clients of a server; extensions can't request them."""
