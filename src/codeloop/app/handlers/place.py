"""Where a project is."""

from codeloop.app.project import Project
from codeloop.schema.operation import NoArguments
from codeloop.schema.project import LocationInfo, OfOneProject, PathInfo, ProjectDirectory, ProjectInfo


async def path(project: Project, args: NoArguments) -> PathInfo:
    """path.get."""
    raise NotImplementedError


async def projects(project: Project, args: NoArguments) -> list[ProjectInfo]:
    """project.list."""
    raise NotImplementedError


async def current(project: Project, args: NoArguments) -> ProjectInfo:
    """project.current."""
    raise NotImplementedError


async def directories(project: Project, args: OfOneProject) -> list[ProjectDirectory]:
    """project.directories."""
    raise NotImplementedError


async def location(project: Project, args: NoArguments) -> LocationInfo:
    """v2.location.get."""
    raise NotImplementedError
