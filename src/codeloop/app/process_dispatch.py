"""Dispatches requests to a process: operations of the process itself, and those of a project,
which it finds first.
"""

from pathlib import Path

from codeloop.app.app import App
from codeloop.app.dispatch import handle, load_handler
from codeloop.app.extensions.open_with_extensions import (
    carry_over_warnings,
    wait_for_config_changes,
)
from codeloop.schema.api.session_inputs import COMMAND, PROMPT, PROMPT_ASYNC
from codeloop.schema.operation import Gives, Operation, Takes

_TURN_OPERATIONS = frozenset((PROMPT.id, PROMPT_ASYNC.id, COMMAND.id))
"""Operations that start a turn. They wait for the extensions' changes to the configuration."""


async def carry_out(app: App, op: Operation[Takes, Gives], args: Takes, directory: Path) -> Gives:
    """Carry out an operation for a directory. Raises CodeloopError when it is refused.

    An operation on a session goes to the project of the session's own directory.
    """
    if op.scope == "process":
        return await load_handler(op)(app, directory, args)
    session_id: str | None = getattr(args, "session_id", None)
    project = await (
        app.get_project(directory)
        if session_id is None
        else app.find_session_project(session_id, directory)
    )
    if (
        op.id in _TURN_OPERATIONS
        and session_id is not None
        and await wait_for_config_changes(project)
    ):
        project = carry_over_warnings(
            await app.find_session_project(session_id, directory), project
        )
    with project.track_request():
        return await handle(project, op, args)
