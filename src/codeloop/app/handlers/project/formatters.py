"""Handler that lists the formatters of a project."""

import asyncio

from codeloop.app.language.edit_finisher import make_formatters
from codeloop.app.project import Project
from codeloop.schema.api.project import FormatterStatus
from codeloop.schema.operation import NoArguments


async def list_formatters(project: Project, _args: NoArguments) -> list[FormatterStatus]:
    """Return the formatters; `enabled`: whether one formats files of this
    directory after an edit.
    """
    states = await asyncio.to_thread(
        make_formatters(project.settings, project.workspace).list_states
    )
    return [
        FormatterStatus(name=each.name, extensions=list(each.extensions), enabled=each.is_enabled)
        for each in states
    ]
