"""The configuration."""

from codeloop.app.project import Project
from codeloop.schema.operation import NoArguments
from codeloop.schema.project import UpdateConfig
from codeloop.schema.wire import JSON


async def get(project: Project, args: NoArguments) -> JSON:
    """config.get."""
    raise NotImplementedError


async def update(project: Project, args: UpdateConfig) -> JSON:
    """config.update."""
    raise NotImplementedError
