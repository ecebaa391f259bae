"""All operations that a server answers, for its document."""

from codeloop.schema.operation import AnyOperation
from codeloop.schema.operation_table import OPERATIONS, SERVER_OPERATIONS
from codeloop.server.version2.rows import ANSWER_WRAPS, ROWS

_STREAMS = frozenset({"v2.event.subscribe"})
_OWN_IDS = frozenset(row.id for row in (*OPERATIONS, *SERVER_OPERATIONS))
ALL_OPERATIONS: tuple[AnyOperation, ...] = (
    *OPERATIONS,
    *SERVER_OPERATIONS,
    *(row for row in ROWS if row.id not in _OWN_IDS | _STREAMS),
)
"""Every row; of two paths that match a request, the first counts."""
VERSION2_IDS: frozenset[str] = frozenset(ANSWER_WRAPS) - _OWN_IDS
"""The ids of the rows of version 2."""
