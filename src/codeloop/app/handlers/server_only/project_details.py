"""Handlers that change a project's name, icon and commands, and create its git repository."""

import asyncio

from codeloop.app.handlers.project.details import read_details, write_details
from codeloop.app.handlers.project.project import (
    describe_project,
    get_current_project,
    read_or_guess_directories,
)
from codeloop.app.project import Project
from codeloop.schema.api.server_operations import UpdateProject
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import ProjectUpdated
from codeloop.schema.operation import NoArguments
from codeloop.schema.resources import ProjectInfo
from codeloop.schema.wire import replace
from codeloop.workspace.git.repository import Git


async def update_project(project: Project, args: UpdateProject) -> ProjectInfo:
    """Change a project's name, icon or commands. Raises OperationError: no such project,
    or an unwritable file.
    """
    file = {file.parent.name: file for file in project.settings.paths.find_databases()}.get(
        args.project_id
    )
    used_directories = (
        await asyncio.to_thread(read_or_guess_directories, file) if file is not None else None
    )
    if file is None or not used_directories:
        raise OperationError("ProjectNotFoundError", f"Project not found: {args.project_id}")
    fields = {"name": args.name, "icon": args.icon, "commands": args.commands}
    changes = {name: value for name, value in fields.items() if value is not None}

    def write() -> ProjectInfo:
        write_details(file.parent, replace(read_details(file.parent), **changes))
        return describe_project(project, file.parent, used_directories)

    info = await asyncio.to_thread(write)
    project.publish_live(ProjectUpdated(properties=info))
    return info


async def init_repository(project: Project, _args: NoArguments) -> ProjectInfo:
    """Create a git repository in the directory, unless it is in one.
    With its first commit it becomes a project.

    Raises GitFailed.
    """
    project_root = project.settings.project_root
    if project_root.vcs is None:
        directory = project_root.directory
        await Git(directory, project.workspace.environment).create()
        if project.reload is not None:
            await project.reload()
    return replace(
        await get_current_project(project, NoArguments()),
        vcs="git",
        worktree=project_root.root_name,
    )
