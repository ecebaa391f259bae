"""Dispatches a process's requests: its own operations, and those of a project, which it finds first."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from codeloop.app.app import App
from codeloop.app.dispatch import handle
from codeloop.app.extended.settled import wait_settled, with_warnings
from codeloop.kit.lazy import load_object
from codeloop.schema import operation
from codeloop.schema.operation import Gives, Operation, Takes

ProcessHandler = Callable[[App, Path, Any], Awaitable[Any]]

PROCESS_HANDLERS: dict[str, str] = {
    operation.HEALTH.id: "app.handlers.project.server:get_health",
    operation.INSTANCE_DISPOSE.id: "app.handlers.project.server:dispose",
    operation.GLOBAL_DISPOSE.id: "app.handlers.project.server:dispose_all",
}
"""Where the handler of an operation is: an async function of the app, the directory and the operation's arguments."""
_TURNS = frozenset((operation.PROMPT.id, operation.PROMPT_ASYNC.id, operation.COMMAND.id))
"""Operations that wait until extensions have said what they change in the configuration."""


async def carry_out(app: App, op: Operation[Takes, Gives], args: Takes, directory: Path) -> Gives:
    """Answer an operation on behalf of a directory. Raises CodeloopError when it is refused.

    What is asked of a session goes to the project that works on it, whatever directory the client named.
    """
    if op.scope == "process":
        answer: ProcessHandler = load_object(PROCESS_HANDLERS[op.id])
        return await answer(app, directory, args)
    session_id: str | None = getattr(args, "session_id", None)
    project = await (app.project(directory) if session_id is None else app.project_of(session_id, directory))
    if op.id in _TURNS and session_id is not None and await wait_settled(project):
        project = with_warnings(await app.project_of(session_id, directory), project)
    with project.serving():
        return await handle(project, op, args)
