"""What follows an edit in a project: its formatters, put together when the first file is edited."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.kit.lazy import load
from codeloop.schema.language_limits import FORMAT_TIME
from codeloop.tool.after_edit import AfterEdit, FormatFiles
from codeloop.workspace.format.formatters import FormattedFile, Formatter, Formatters
from codeloop.workspace.workspace import Workspace

_Format = Callable[[Workspace, Mapping[Path, Sequence[Formatter]], float], Awaitable[dict[Path, FormattedFile]]]


def after_edit(settings: ProjectSettings, workspace: Workspace) -> AfterEdit:
    """Return what follows the edits in a project."""
    return AfterEdit(_formatting(formatters_of(settings, workspace), workspace))


def formatters_of(settings: ProjectSettings, workspace: Workspace) -> Formatters:
    """Return the formatters of a project: none is run in one that is not trusted, where it would run its code."""
    return Formatters(workspace, settings.config.formatter if settings.trusted else False)


def _formatting(formatters: Formatters, workspace: Workspace) -> FormatFiles:
    async def format_files(files: Sequence[Path]) -> dict[Path, FormattedFile]:
        wanted = {file: found for file in files if (found := formatters.of(file))}
        if not wanted:
            return {}
        run: _Format = load("workspace.format.run:format_files")
        return await run(workspace, wanted, FORMAT_TIME.seconds)

    return format_files
