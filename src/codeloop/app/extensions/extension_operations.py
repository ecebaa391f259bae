"""Carries out the API operations that extensions request, except those by which they could leave their sandbox.

A user who attaches a file or runs a shell line through a client needs no permission. An extension is not a user,
so the same operations must not do for it what its sandbox forbids.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from codeloop.extend.hooks.answer_filter import Reach
from codeloop.extend.host.hosts import RunOperation
from codeloop.extend.host.protocol import OperationCall
from codeloop.kit.guarded_paths import is_secret
from codeloop.schema import operation
from codeloop.schema.api.files import FileQuery, FoundLine, VcsFileDiff
from codeloop.schema.api.session_inputs import FilePartInput, Prompt
from codeloop.schema.api.session_requests import CreateSession, UpdateSession
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import Operation

_ALLOWED_FOR_PROJECT_EXTENSIONS = frozenset(
    (
        operation.SESSION_CREATE.id,
        operation.PROMPT.id,
        operation.PROMPT_ASYNC.id,
        operation.SESSION_UPDATE.id,
        operation.ABORT.id,
        operation.TUI_TOAST.id,
        operation.TUI_APPEND_PROMPT.id,
        operation.LOG.id,
    )
)
"""The operations that an extension of a project may request, in addition to those that only read."""
_ESCAPING_OPERATIONS = frozenset(
    (
        operation.SESSION_SHELL.id,
        operation.SESSION_IMPORT.id,
        operation.PTY_CREATE.id,
        operation.PTY_UPDATE.id,
        operation.PTY_TICKET.id,
        operation.CONFIG_UPDATE.id,
        operation.PROVIDER_ADD.id,
        operation.MCP_ADD.id,
        operation.PERMISSION_REPLY.id,
        operation.PERMISSION_RESPOND.id,
        operation.TUI_SUBMIT_PROMPT.id,
        operation.TUI_EXECUTE.id,
        operation.TUI_PUBLISH.id,
    )
)
"""Operations that run a program without a sandbox, answer in the user's name, or change rules."""
_SANDBOXED_MESSAGE = (
    '{} leads out of the sandbox of extensions. To allow it: "sandbox": {{"extensions": false}} in the configuration.'
)


async def serve_operation(carry_out: RunOperation, call: OperationCall, reach: Reach, root: Path) -> Any:
    """Carry out an operation for an extension. Raises CodeloopError if there is no such operation, or it is refused."""
    row = next((row for row in operation.OPERATIONS if row.id == call.operation), None)
    if row is None or row.scope == "process":
        raise OperationError("NotFoundError", f"There is no operation {call.operation} for extensions.")
    if reach == "project" and row.method != "GET" and row.id not in _ALLOWED_FOR_PROJECT_EXTENSIONS:
        raise OperationError("BadRequest", f"{row.id} is not for extensions that come with a project.")
    if reach == "own" and row.id in _ESCAPING_OPERATIONS:
        raise OperationError("BadRequest", _SANDBOXED_MESSAGE.format(row.id))
    arguments = row.convert_arguments(call.path, call.query, call.body)
    if reach == "all":
        return await carry_out(row, arguments)
    escape = _find_escape(arguments, root)
    if escape:
        raise OperationError("BadRequest", f"{row.id}: an extension in a sandbox can't {escape}.")
    return _drop_secrets(row, await carry_out(row, arguments))


def _find_escape(arguments: Any, root: Path) -> str:
    """Return the action in these arguments that would escape the sandbox, as a verb phrase; "" if there is none."""
    match arguments:
        case CreateSession() | UpdateSession() if any(rule.action == "allow" for rule in arguments.permission or ()):
            return "allow anything"
        case Prompt() if any((arguments.tools or {}).values()):
            return "allow tools"
        case Prompt() if any(isinstance(part, FilePartInput) and not _may_read(part, root) for part in arguments.parts):
            return "attach that file"
        case FileQuery() if is_secret(arguments.path) or is_secret(str((root / arguments.path).resolve())):
            return f"read {arguments.path}, which may hold keys"
        case _:
            return ""


def _may_read(part: FilePartInput, root: Path) -> bool:
    """Return whether an extension may attach a part: a project's file without keys, or data that is no file."""
    if not part.url.startswith("file:"):
        return True
    path = (root / unquote(urlsplit(part.url).path)).resolve()
    # The name is checked too: a link `notes.txt` may lead to `.env`, and a link `.env` to another file.
    return path.is_relative_to(root.resolve()) and not is_secret(str(path)) and not is_secret(part.url)


def _drop_secrets(row: Operation[Any, Any], answer: Any) -> Any:
    """Return an answer without its lines and diffs of files that may hold keys."""
    if row is operation.FIND_TEXT:
        return [line for line in cast("Sequence[FoundLine]", answer) if not is_secret(line.path.text)]
    if row is operation.VCS_DIFF:
        return [each for each in cast("Sequence[VcsFileDiff]", answer) if not is_secret(each.file)]
    return answer
