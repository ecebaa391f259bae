"""What git says of the work tree."""

from codeloop.app.project import Project
from codeloop.schema.files import AskDiff, VcsFileDiff, VcsFileStatus, VcsInfo
from codeloop.schema.operation import NoArguments


async def get(project: Project, args: NoArguments) -> VcsInfo:
    """vcs.get."""
    raise NotImplementedError


async def status(project: Project, args: NoArguments) -> list[VcsFileStatus]:
    """vcs.status."""
    raise NotImplementedError


async def diff(project: Project, args: AskDiff) -> list[VcsFileDiff]:
    """vcs.diff."""
    raise NotImplementedError
