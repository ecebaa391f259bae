"""Dispatches the operations of a project to their handlers,
each of which is imported for its first request.
"""

import errno
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from codeloop.app.project import Project
from codeloop.kit.lazy import load_object
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import AnyOperation, Constant, Gives, Operation, Takes, Unsupported
from codeloop.store.database import StoreError

_DISK_ERRORS = {
    errno.ENOSPC: "There is no space on the disk",
    errno.EDQUOT: "There is no space left for you on the disk",
    errno.EIO: "The disk failed",
    errno.EROFS: "The disk can only be read",
}
"""Explanations of disk errors, by `errno`."""


def serve_extensions(project: Project) -> None:
    """Start serving the operations that a project's extensions request.

    The module that starts extensions can't do it: `app.project` imports that one,
    and handlers import `app.project`.
    """
    hosts = project.services.extensions.hosts
    if hosts is not None and not hosts.run_operation.done():
        hosts.run_operation.set_result(partial(_serve_extension, project))


async def _serve_extension(project: Project, op: Operation[Takes, Gives], args: Takes) -> Gives:
    with project.track_request():
        return await handle(project, op, args)


def load_handler(op: AnyOperation) -> Callable[..., Awaitable[Any]]:
    """Import the handler that an operation's row names."""
    return load_object(f"app.handlers.{op.handler}")


async def handle(project: Project, op: Operation[Takes, Gives], args: Takes) -> Gives:
    """Carry out an operation of a project. Raises CodeloopError when it is refused,
    or the disk fails.
    """
    match op.handler:
        case Unsupported(text=text):
            raise OperationError("BadRequest", text)
        case Constant(value=value):
            return value
        case _:
            pass
    # This does nothing if they are served already.
    serve_extensions(project)
    try:
        return await load_handler(op)(project, args)
    except OSError as error:
        explanation = _DISK_ERRORS.get(error.errno or 0)
        if explanation is None:
            raise
        where = f" at {error.filename}" if error.filename else ""
        text = f"{explanation}{where} ({error.strerror}): {op.id} failed. Fix that, then try again."
        raise StoreError(text) from error
