"""Handlers of projects: the current one, and all known ones."""

import asyncio
from contextlib import closing, suppress
from pathlib import Path

from codeloop.app.handlers import handles
from codeloop.app.handlers.project.details import list_worktrees, read_details
from codeloop.app.handlers.reports.databases import find_databases
from codeloop.app.handlers.workspace.vcs import list_work_trees
from codeloop.app.project import Project
from codeloop.config.project_root import GLOBAL_PROJECT_ID, read_root
from codeloop.schema import operation
from codeloop.schema.api.project import (
    LocatedProject,
    LocationInfo,
    PathInfo,
    ProjectDirectory,
    ProjectId,
    ProjectInfo,
    ProjectTime,
)
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments
from codeloop.schema.wire import replace
from codeloop.store.database import StoreError
from codeloop.store.queries import UsedDirectory, open_queries


@handles(operation.PATH_GET)
async def get_paths(project: Project, _args: NoArguments) -> PathInfo:
    """Return the folders of the project, and those of codeloop's files."""
    paths, project_root = project.settings.paths, project.settings.project_root
    return PathInfo(
        home=str(paths.home),
        state=str(paths.state),
        config=str(paths.config),
        worktree=str(project_root.root),
        directory=str(project_root.directory),
    )


@handles(operation.PROJECT_LIST)
async def list_projects(project: Project, _args: NoArguments) -> list[ProjectInfo]:
    """Return all projects that were opened on this machine, newest change first; unreadable ones are left out."""

    def read() -> list[ProjectInfo]:
        databases = ((file, read_or_guess_directories(file)) for file in find_databases(project))
        databases_used = ((file, used_directories) for file, used_directories in databases if used_directories)
        return sorted(
            (describe_project(project, file.parent, used_directories) for file, used_directories in databases_used),
            key=lambda each: -each.time.updated,
        )

    return await asyncio.to_thread(read)


@handles(operation.PROJECT_CURRENT)
async def get_current(project: Project, _args: NoArguments) -> ProjectInfo:
    """Return the project of the directory; without sessions its times are those of its data folder."""
    place = project.settings.project_root
    file = project.store.path
    used_directories = await asyncio.to_thread(_read_directories, file)
    used_directories = used_directories or [_describe_empty_project(file, str(place.root))]
    is_global = place.project_id == GLOBAL_PROJECT_ID
    info = await asyncio.to_thread(describe_project, project, file.parent, used_directories)
    return replace(info, worktree="/" if is_global else str(place.root))


@handles(operation.PROJECT_DIRECTORIES)
async def list_directories(project: Project, args: ProjectId) -> list[ProjectDirectory]:
    """Return the directories in which sessions of a project were held. Raises OperationError: no such project."""
    files = {file.parent.name: file for file in find_databases(project)}
    file = files.get(args.project_id)
    if file is None:
        raise OperationError("NotFoundError", f"Project not found: {args.project_id}")
    project_directories = [
        ProjectDirectory(directory=each.directory) for each in await asyncio.to_thread(_read_directories, file) or []
    ]
    if args.project_id != project.settings.project_root.project_id:
        return project_directories
    copies = {each.directory: each for each in await list_work_trees(project)}
    return [*copies.values(), *(each for each in project_directories if each.directory not in copies)]


@handles(operation.LOCATION_GET)
async def get_location(project: Project, _args: NoArguments) -> LocationInfo:
    """Return the directory, and the project that it belongs to."""
    place = project.settings.project_root
    top = "/" if place.project_id == GLOBAL_PROJECT_ID else str(place.root)
    return LocationInfo(directory=str(place.directory), project=LocatedProject(id=place.project_id, directory=top))


def _read_directories(file: Path) -> list[UsedDirectory] | None:
    """Return the directories of the sessions in a database; None if it can't be read. Blocks."""
    with suppress(StoreError), closing(open_queries(file)) as queries:
        return queries.list_directories()
    return None


def read_or_guess_directories(file: Path) -> list[UsedDirectory] | None:
    """Return the directories of a project's sessions; without sessions, the folder it was opened in. Blocks."""
    used_directories, root = _read_directories(file), read_root(file.parent)
    return [_describe_empty_project(file, root)] if used_directories == [] and root is not None else used_directories


def _describe_empty_project(file: Path, root: str) -> UsedDirectory:
    """Return the directory of a project without sessions, with the times of its data folder."""
    opened_at = int(file.parent.stat().st_mtime * 1000)
    return UsedDirectory(root, "", opened_at, opened_at)


def describe_project(project: Project, folder: Path, used_directories: list[UsedDirectory]) -> ProjectInfo:
    """Return the project with this data folder. Blocks."""
    project_id, newest, about = folder.name, used_directories[0], read_details(folder)
    time = ProjectTime(created=min(each.created for each in used_directories), updated=newest.updated)
    if project_id == GLOBAL_PROJECT_ID:
        return ProjectInfo(id=project_id, worktree="/", time=time, sandboxes=[])
    sandboxes = list_worktrees(project.settings.paths, project_id)
    used_directories = [each for each in used_directories if each.directory not in sandboxes] or used_directories
    newest = used_directories[0]
    top = newest.directory.removesuffix(newest.path).rstrip("/") if newest.path else newest.directory
    return ProjectInfo(
        id=project_id,
        worktree=top or "/",
        vcs="git",
        time=time,
        sandboxes=sandboxes,
        name=about.name,
        icon=about.icon,
        commands=about.commands,
    )
