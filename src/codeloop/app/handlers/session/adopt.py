"""Handlers that find the sessions of folders that were moved, and take them over."""

import os
from pathlib import Path

from codeloop.app import take_over
from codeloop.app.moved_sessions import Destination
from codeloop.app.project import Project
from codeloop.schema.api.session_requests import AdoptFolder, MovedFolder
from codeloop.schema.errors import OperationError
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments


async def list_moved_folders(project: Project, _args: NoArguments) -> list[MovedFolder]:
    """Return the folders that are gone and may be the project's now, the newest first."""
    return [
        MovedFolder(
            directory=place.root, sessions=count, notice=take_over.describe_doubt(place.root, count)
        )
        for place, count in take_over.list_moved_folders(_get_destination(project))
    ]


async def adopt_folder(project: Project, args: AdoptFolder) -> list[Session]:
    """Take over the sessions of a folder that is gone; return those that are not subagents'.

    Raises OperationError (NotFoundError) for a path that is not absolute, has no sessions, or is
    still a folder: there is no such folder to take over from then.
    """
    root = os.path.normpath(args.directory)
    if not root.startswith("/") or "\0" in root:
        raise OperationError(
            "NotFoundError", f"{args.directory!r} is not the absolute path of a folder."
        )
    if Path(root).is_dir():
        advice = "Go there (--dir), or resume a copy here: codeloop run --session ID --fork"
        raise OperationError(
            "NotFoundError", f"{root} is still there, so its sessions stay there. {advice}"
        )
    # A path that leads over links is stored without them.
    root = str(Path(os.path.realpath(Path(root).parent)) / Path(root).name)
    sessions = take_over.adopt_folder(_get_destination(project), root)
    if not sessions:
        hint = "`codeloop session list --all` shows all with their folders."
        raise OperationError("NotFoundError", f"No session belongs to {root}. {hint}")
    return sessions


def _get_destination(project: Project) -> Destination:
    settings = project.settings
    return Destination(settings.paths, settings.project_root, project.store)
