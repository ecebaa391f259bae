"""What a session changed in files."""

from codeloop.app.project import Project
from codeloop.schema.message import FileDiff
from codeloop.schema.sessions import AskSessionDiff


async def diff(project: Project, args: AskSessionDiff) -> list[FileDiff]:
    """session.diff."""
    raise NotImplementedError
