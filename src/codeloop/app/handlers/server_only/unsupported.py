"""Handlers of two operations in OpenCode's API that codeloop does not support;
the others are rows that refuse.
"""

from codeloop import __version__
from codeloop.app.project import Project
from codeloop.schema.api.session_requests import SessionId
from codeloop.schema.api.unsupported import Upgrade, UpgradeRefused


async def refuse_upgrade(_project: Project, args: Upgrade) -> UpgradeRefused:
    """Return a refusal: a running server does not replace itself."""
    return UpgradeRefused(
        success=False,
        error=f"codeloop {__version__} stays as it is: stop the server, then install {args.target} the way it was "
        "installed.",
    )


async def detach_subagents(project: Project, args: SessionId) -> bool:
    """Return False: no subagent is detached from its call.
    Raises OperationError when there is no such session.
    """
    project.store.get_session(args.session_id)
    return False
