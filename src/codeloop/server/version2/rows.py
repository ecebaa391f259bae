"""The table of version 2 (`/api/*`): its operations, how their answers are wrapped,
and what answers them. It holds the rows of the preview that 1.18 had, too.
"""

from typing import Any, cast

from codeloop.schema.operation import AnyOperation, Operation
from codeloop.schema.wire import JSON, Wire
from codeloop.server.version2.catalog_rows import CATALOG_ROWS
from codeloop.server.version2.row import Answer, AnswerWrap
from codeloop.server.version2.session_rows import SESSION_ROWS
from codeloop.server.version2.workspace_rows import WORKSPACE_ROWS

_TEXTS = (*SESSION_ROWS, *CATALOG_ROWS, *WORKSPACE_ROWS)


def _make_operation(head: str, takes: type[Wire]) -> AnyOperation:
    wrap, operation_id, method, path = head.split()
    gives = type(None) if wrap == "none" else JSON
    return Operation(
        operation_id,
        cast("Any", method),
        path,
        takes,
        gives,
        has_body=(method, path) == ("DELETE", "/api/worktree"),
    )


ROWS: tuple[AnyOperation, ...] = tuple(_make_operation(head, takes) for head, takes, _ in _TEXTS)
"""Every row; of two paths that match a request, the first counts."""
ANSWER_WRAPS: dict[str, AnswerWrap] = {
    head.split()[1]: cast("AnswerWrap", head.split()[0]) for head, _, _ in _TEXTS
}
"""How the answer of each row is wrapped, by its id."""
ANSWERS: dict[str, Answer] = {head.split()[1]: answer for head, _, answer in _TEXTS}
"""What answers each row, by its id."""
LIST_OPERATIONS = frozenset(
    row.id
    for row in ROWS
    if ANSWER_WRAPS[row.id] in {"located", "data"}
    and (row.id.endswith(".list") or row.id == "v2.session.context")
)
"""The ids of the rows whose answer holds a list under `data`;
the document describes them as arrays.
"""
