"""All operations that a server answers, for its document: the tables of the schema,
and the preview; media types.
"""

from codeloop.schema.api.server_operations import VCS_DIFF_RAW
from codeloop.schema.operation import AnyOperation
from codeloop.schema.operation_table import OPERATIONS, SERVER_OPERATIONS
from codeloop.server.preview.operations import ANSWER_WRAPS, PREVIEW_OPERATIONS

ALL_OPERATIONS: tuple[AnyOperation, ...] = (*OPERATIONS, *SERVER_OPERATIONS, *PREVIEW_OPERATIONS)
"""Every row; of two paths that match a request, the first counts."""
PREVIEW_IDS: frozenset[str] = frozenset(ANSWER_WRAPS)
"""The ids of the preview's rows."""
MEDIA_TYPES = {
    "v2.fs.read": "application/octet-stream",
    VCS_DIFF_RAW.id: "text/x-diff; charset=utf-8",
}
"""Operation id -> the media type of its answer, where that is not JSON."""
