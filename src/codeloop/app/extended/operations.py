"""Operations of the API that extensions ask for, carried out as those of any client."""

from typing import Any

from codeloop.extend.host.hosts import CarryOut
from codeloop.extend.host.protocol import OperationCall
from codeloop.schema import operation
from codeloop.schema.errors import OperationError

_CONFINED = frozenset(
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
"""What an extension that is sandboxed may ask for besides reading: nothing that leads out of its sandbox."""


async def serve_operation(carry_out: CarryOut, call: OperationCall, is_confined: bool) -> Any:
    """Carry out an operation that an extension asks for. Raises CodeloopError: no such operation, refused."""
    row = next((row for row in operation.OPERATIONS if row.id == call.operation), None)
    if row is None or row.scope == "process":
        raise OperationError("NotFoundError", f"There is no operation {call.operation} for extensions.")
    if is_confined and row.method != "GET" and row.id not in _CONFINED:
        raise OperationError("BadRequest", f"{row.id} is not for extensions that come with a project.")
    return await carry_out(row, row.arguments(call.path, call.query, call.body))
