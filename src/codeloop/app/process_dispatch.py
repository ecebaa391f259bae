"""Dispatches requests to a process: operations of the process itself, and those of a project, which it finds first."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from codeloop.app.app import App
from codeloop.app.dispatch import handle
from codeloop.app.extensions.open_with_extensions import carry_over_warnings, wait_for_config_changes
from codeloop.kit.lazy import load_object
from codeloop.schema import operation
from codeloop.schema.operation import Gives, Operation, Takes

ProcessHandler = Callable[[App, Path, Any], Awaitable[Any]]

PROCESS_HANDLERS: dict[str, str] = {
    operation.HEALTH.id: "app.handlers.process:get_health",
    operation.INSTANCE_DISPOSE.id: "app.handlers.process:reload_directory",
    operation.GLOBAL_DISPOSE.id: "app.handlers.process:reload_all_directories",
}
"""The module and name of each handler of the process itself, by operation id."""
_TURN_OPERATIONS = frozenset((operation.PROMPT.id, operation.PROMPT_ASYNC.id, operation.COMMAND.id))
"""Operations that start a turn. They wait for the extensions' changes to the configuration."""


async def carry_out(app: App, op: Operation[Takes, Gives], args: Takes, directory: Path) -> Gives:
    """Carry out an operation for a directory. Raises CodeloopError when it is refused.

    An operation on a session goes to the project of the session's own directory.
    """
    if op.scope == "process":
        handler: ProcessHandler = load_object(PROCESS_HANDLERS[op.id])
        return await handler(app, directory, args)
    session_id: str | None = getattr(args, "session_id", None)
    project = await (
        app.get_project(directory) if session_id is None else app.find_session_project(session_id, directory)
    )
    if op.id in _TURN_OPERATIONS and session_id is not None and await wait_for_config_changes(project):
        project = carry_over_warnings(await app.find_session_project(session_id, directory), project)
    with project.track_request():
        return await handle(project, op, args)
