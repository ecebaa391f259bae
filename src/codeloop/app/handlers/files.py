"""Files and folders."""

from codeloop.app.project import Project
from codeloop.schema.files import FileContent, FileNode, FileStatus, OfOnePath
from codeloop.schema.operation import NoArguments


async def listed(project: Project, args: OfOnePath) -> list[FileNode]:
    """file.list."""
    raise NotImplementedError


async def read(project: Project, args: OfOnePath) -> FileContent:
    """file.read."""
    raise NotImplementedError


async def status(project: Project, args: NoArguments) -> list[FileStatus]:
    """file.status."""
    raise NotImplementedError
