"""A command line that a person runs."""

from codeloop.app.project import Project
from codeloop.schema.prompts import MessageWithParts, RunShell


async def shell(project: Project, args: RunShell) -> MessageWithParts:
    """session.shell."""
    raise NotImplementedError
