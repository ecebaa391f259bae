"""All operations that a server answers, and those that it answers with something else than JSON."""

from codeloop.schema.operation import OPERATIONS, AnyOperation
from codeloop.schema.server_operation import SERVER_OPERATIONS, VCS_DIFF_RAW

SERVED: tuple[AnyOperation, ...] = (*OPERATIONS, *SERVER_OPERATIONS)
"""Every row; of two paths that fit, the one that stands first is meant."""
TEXTS = {VCS_DIFF_RAW.id: "text/x-diff; charset=utf-8"}
"""Answered as text of this kind, not as JSON."""
