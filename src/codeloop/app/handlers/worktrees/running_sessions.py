"""Finds the sessions whose turns run in a work tree,
so that it is not changed or removed below them.
"""

from pathlib import Path

from codeloop.app.project import Project
from codeloop.kit.text.undecodable import escape_undecodable
from codeloop.schema.errors import OperationError
from codeloop.store.queries import NO_LIMIT, SessionFilter


def list_running_sessions(project: Project, folder: Path) -> list[str]:
    """Return the ids of the sessions in a folder, or below it, with a running turn."""
    store, top = project.store, escape_undecodable(str(folder))
    return [
        session.id
        for session in store.queries.find_sessions(SessionFilter(limit=NO_LIMIT))
        if (session.directory == top or session.directory.startswith(top + "/"))
        and store.leases.is_held(session.id)
    ]


def check_idle(project: Project, folder: Path) -> None:
    """Raise OperationError (SessionBusyError) if a turn runs in a folder."""
    for session_id in list_running_sessions(project, folder):
        raise OperationError(
            "SessionBusyError", f"The session {session_id} works in {folder}. Abort it first."
        )
