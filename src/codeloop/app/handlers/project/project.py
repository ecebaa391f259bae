"""Handlers of projects: the current one, and all that were opened on this machine."""

import asyncio
from contextlib import closing, suppress
from pathlib import Path

from codeloop.app.handlers.project.details import read_details
from codeloop.app.handlers.workspace.vcs import list_work_trees
from codeloop.app.handlers.worktrees.folder import list_worktrees
from codeloop.app.project import Project
from codeloop.config.project_root import GLOBAL_PROJECT_ID, read_root
from codeloop.schema.api.project import (
    LocatedProject,
    LocationInfo,
    PathInfo,
    ProjectDirectory,
    ProjectId,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.resources import ProjectInfo, ProjectTime
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.queries import UsedDirectory, open_queries


async def get_paths(project: Project, _args: NoArguments) -> PathInfo:
    """Return the folders of the project, and those of codeloop's files."""
    paths, project_root = project.settings.paths, project.settings.project_root
    return PathInfo(
        home=str(paths.home),
        state=str(paths.state),
        config=str(paths.config),
        worktree=project_root.root_name,
        directory=project_root.directory_name,
    )


async def list_projects(project: Project, _args: NoArguments) -> list[ProjectInfo]:
    """Return all projects that were opened on this machine, newest change first;
    unreadable ones are left out.
    """

    def read_projects() -> list[ProjectInfo]:
        infos: list[ProjectInfo] = []
        for file in project.settings.paths.find_databases():
            used_directories = read_or_guess_directories(file)
            if used_directories:
                infos.append(describe_project(project, file.parent, used_directories))
        return sorted(infos, key=lambda each: -each.time.updated)

    return await asyncio.to_thread(read_projects)


async def get_current_project(project: Project, _args: NoArguments) -> ProjectInfo:
    """Return the project of the directory; without sessions its times are
    those of its data folder.
    """
    project_root = project.settings.project_root
    file = project.store.path
    used_directories = await asyncio.to_thread(_read_directories, file)
    used_directories = used_directories or [_describe_empty_project(file, project_root.root_name)]
    is_global = project_root.project_id == GLOBAL_PROJECT_ID
    info = await asyncio.to_thread(describe_project, project, file.parent, used_directories)
    return replace(info, worktree="/" if is_global else project_root.root_name)


async def list_directories(project: Project, args: ProjectId) -> list[ProjectDirectory]:
    """Return the directories in which sessions of a project were held.
    Raises OperationError: no such project.
    """
    files = {file.parent.name: file for file in project.settings.paths.find_databases()}
    file = files.get(args.project_id)
    if file is None:
        raise OperationError("NotFoundError", f"Project not found: {args.project_id}")
    project_directories = [
        ProjectDirectory(directory=each.directory)
        for each in await asyncio.to_thread(_read_directories, file) or []
    ]
    if args.project_id != project.settings.project_root.project_id:
        return project_directories
    # Those of git first, since they have a `strategy`;
    # a directory with sessions may be one of them.
    work_trees = {each.directory: each for each in await list_work_trees(project)}
    return [
        *work_trees.values(),
        *(each for each in project_directories if each.directory not in work_trees),
    ]


async def get_location(project: Project, _args: NoArguments) -> LocationInfo:
    """Return the directory, and the project that it belongs to."""
    project_root = project.settings.project_root
    top = "/" if project_root.project_id == GLOBAL_PROJECT_ID else project_root.root_name
    return LocationInfo(
        directory=project_root.directory_name,
        project=LocatedProject(id=project_root.project_id, directory=top, canonical=top),
    )


def _read_directories(file: Path) -> list[UsedDirectory] | None:
    """Return the directories of the sessions in a database, last used first;
    None if it can't be read. Blocks.
    """
    with suppress(StoreError), closing(open_queries(file)) as queries:
        return queries.list_directories()
    return None


def read_or_guess_directories(file: Path) -> list[UsedDirectory] | None:
    """Return the directories of a project's sessions;
    without sessions, the root it was opened with. Blocks.

    None if the database can't be read.
    """
    used_directories, root = _read_directories(file), read_root(file.parent)
    is_empty = used_directories == []
    return (
        [_describe_empty_project(file, root)] if is_empty and root is not None else used_directories
    )


def _describe_empty_project(file: Path, root: str) -> UsedDirectory:
    """Return the directory of a project without sessions, with the times of its data folder."""
    opened_at = int(file.parent.stat().st_mtime * 1000)
    return UsedDirectory(root, "", opened_at, opened_at)


def describe_project(
    project: Project, folder: Path, used_directories: list[UsedDirectory]
) -> ProjectInfo:
    """Describe the project with this data folder and these directories, last used first. Blocks."""
    project_id, details = folder.name, read_details(folder)
    time = ProjectTime(
        created=min(each.created for each in used_directories), updated=used_directories[0].updated
    )
    if project_id == GLOBAL_PROJECT_ID:
        return ProjectInfo(id=project_id, worktree="/", time=time, sandboxes=[])
    sandboxes = list_worktrees(project.settings.paths, project_id)
    # The top folder follows from a directory in the main work tree, if there is one,
    # not in a further one.
    used_directories = [
        each for each in used_directories if each.directory not in sandboxes
    ] or used_directories
    newest = used_directories[0]
    top = (
        newest.directory.removesuffix(newest.path).rstrip("/") if newest.path else newest.directory
    )
    return ProjectInfo(
        id=project_id,
        worktree=top or "/",
        vcs="git",
        time=time,
        sandboxes=sandboxes,
        name=details.name,
        icon=details.icon,
        commands=details.commands,
    )
