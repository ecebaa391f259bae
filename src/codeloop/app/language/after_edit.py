"""Builds a project's EditFinisher: its formatters and diagnostics, set up at the first edit."""

from collections.abc import Sequence
from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.lsp.servers.server_row import load_server_rows
from codeloop.schema.bounds.language_tools import FORMAT_TIME
from codeloop.schema.wire import JSON
from codeloop.tool.edit_finisher import Diagnoser, EditFinisher, FileChange, FormatFiles, MayRead
from codeloop.tool.services import ToolServices
from codeloop.workspace.format.formatters import FormattedFile, Formatters
from codeloop.workspace.workspace import Workspace


def make_edit_finisher(settings: ProjectSettings, workspace: Workspace, services: ToolServices) -> EditFinisher:
    """Make the formatting and diagnosing that follow the edits in a project."""
    diagnose = _LazyDiagnosis(settings, workspace, services) if settings.config.lsp is not False else None
    return EditFinisher(_make_formatting(formatters_of(settings, workspace), workspace), diagnose)


def formatters_of(settings: ProjectSettings, workspace: Workspace) -> Formatters:
    """Return the formatters of a project."""
    return Formatters(workspace, settings.config.formatter, trusted=settings.trusted)


def _make_formatting(formatters: Formatters, workspace: Workspace) -> FormatFiles:
    async def format_files_of_edit(files: Sequence[Path]) -> dict[Path, FormattedFile]:
        formatters_by_file = {
            file: file_formatters for file in files if (file_formatters := formatters.find_formatters(file))
        }
        if not formatters_by_file:
            return {}
        from codeloop.workspace.format.run_formatters import format_files

        return await format_files(workspace, formatters_by_file, FORMAT_TIME.seconds)

    return format_files_of_edit


class _LazyDiagnosis:
    """Loads what speaks with language servers when the first file is edited that one of them may serve."""

    def __init__(self, settings: ProjectSettings, workspace: Workspace, services: ToolServices) -> None:
        self._workspace = workspace
        self._services = services
        self._names = {name for row in load_server_rows() for name in row.languages}
        if isinstance(settings.config.lsp, dict):
            self._names |= {name for each in settings.config.lsp.values() for name in each.extensions or ()}
        self._diagnose: Diagnoser | None = None

    async def record_errors(self, changes: Sequence[FileChange]) -> None:
        """Have the servers learn what is wrong before the changes are made."""
        if diagnose := self._load(changes):
            await diagnose.record_errors(changes)

    async def find_new_errors(
        self, session_id: str, changes: Sequence[FileChange], may_read: MayRead
    ) -> tuple[str, JSON]:
        """Return the new diagnostics after changes: a text for the model, and data for the screen."""
        diagnose = self._load(changes)
        return await diagnose.find_new_errors(session_id, changes, may_read) if diagnose else ("", {})

    def _load(self, changes: Sequence[FileChange]) -> Diagnoser | None:
        paths = [change.target.real for change in changes]
        if self._diagnose is None and any(path.suffix in self._names or path.name in self._names for path in paths):
            from codeloop.app.language.servers import EditDiagnoser

            languages = self._services.languages
            if languages is not None:
                self._diagnose = EditDiagnoser(languages, self._workspace, self._services.notices)
        return self._diagnose
