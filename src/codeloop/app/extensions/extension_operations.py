"""Carries out the API operations that extensions request,
except those by which they could leave their sandbox.

A user who attaches a file or runs a shell line through a client needs no permission.
An extension is not a user,
so the same operations must not do for it what its sandbox forbids.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from codeloop.app.extensions.confined_arguments import confine_arguments
from codeloop.extend.hooks.answer_filter import Reach
from codeloop.extend.host.host_callbacks import RunOperation
from codeloop.extend.host.protocol import OperationCall
from codeloop.kit.guarded_paths import is_secret
from codeloop.schema.api.files import FIND_TEXT, VCS_DIFF, FoundLine, VcsFileDiff
from codeloop.schema.api.project import LOG
from codeloop.schema.api.session_inputs import ABORT, PROMPT, PROMPT_ASYNC
from codeloop.schema.api.session_requests import SESSION_CREATE, SESSION_UPDATE
from codeloop.schema.api.tui import TUI_APPEND_PROMPT, TUI_TOAST
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import Operation
from codeloop.schema.operation_table import OPERATIONS

_ALLOWED_FOR_PROJECT_EXTENSIONS = frozenset(
    (
        SESSION_CREATE.id,
        PROMPT.id,
        PROMPT_ASYNC.id,
        SESSION_UPDATE.id,
        ABORT.id,
        TUI_TOAST.id,
        TUI_APPEND_PROMPT.id,
        LOG.id,
    )
)
"""The operations that an extension of a project may request,
in addition to those that only read.
"""
_ALLOWED_FOR_OWN_EXTENSIONS = _ALLOWED_FOR_PROJECT_EXTENSIONS | frozenset(
    (
        *(
            "session.stopAll",
            "session.delete",
            "session.fork",
            "session.deleteMessage",
            "part.delete",
        ),
        *(
            "session.command",
            "session.summarize",
            "session.revert",
            "session.unrevert",
            "session.undoFiles",
        ),
        *(
            "session.share",
            "session.unshare",
            "permission.revoke",
            "question.reject",
            "auth.set",
            "auth.remove",
        ),
        *(
            "mcp.connect",
            "mcp.disconnect",
            "mcp.complete",
            "tui.clearPrompt",
            "tui.openHelp",
            "tui.openSessions",
        ),
        *("tui.openThemes", "tui.openModels", "tui.selectSession"),
    )
)
"""The same for the user's own extensions: none runs a program, answers in the user's name,
or changes rules.
"""
_SANDBOXED_MESSAGE = (
    '{} leads out of the sandbox of extensions. To allow it: "sandbox": '
    '{{"extensions": false}} in the configuration.'
)


async def serve_operation(
    carry_out: RunOperation, call: OperationCall, reach: Reach, root: Path
) -> Any:
    """Carry out an operation for an extension. Raises CodeloopError if there is no such operation,
    or it is refused.
    """
    row = next((row for row in OPERATIONS if row.id == call.operation), None)
    if row is None or row.scope == "process":
        raise OperationError(
            "NotFoundError", f"There is no operation {call.operation} for extensions."
        )
    if reach == "project" and row.method != "GET" and row.id not in _ALLOWED_FOR_PROJECT_EXTENSIONS:
        raise OperationError(
            "BadRequest", f"{row.id} is not for extensions that come with a project."
        )
    if reach == "own" and row.method != "GET" and row.id not in _ALLOWED_FOR_OWN_EXTENSIONS:
        raise OperationError("BadRequest", _SANDBOXED_MESSAGE.format(row.id))
    arguments = row.convert_arguments(call.path, call.query, call.body)
    if reach == "all":
        return await carry_out(row, arguments)
    confined = await confine_arguments(row, arguments, carry_out, root)
    return _drop_secrets(row, await carry_out(row, confined))


def _drop_secrets(row: Operation[Any, Any], answer: Any) -> Any:
    """Return an answer without its lines and diffs of files that may hold keys."""
    if row is FIND_TEXT:
        return [
            line for line in cast("Sequence[FoundLine]", answer) if not is_secret(line.path.text)
        ]
    if row is VCS_DIFF:
        return [each for each in cast("Sequence[VcsFileDiff]", answer) if not is_secret(each.file)]
    return answer
