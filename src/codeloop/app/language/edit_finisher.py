"""Makes the `EditFinisher` of a project, which formats edited files and reports new diagnostics."""

from collections.abc import Sequence
from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.lsp.servers.server_row import load_server_rows
from codeloop.schema.bounds.language_tools import FORMAT_TIME
from codeloop.schema.wire import JSON
from codeloop.tool.files.edit_finisher import (
    Diagnoser,
    EditFinisher,
    FileChange,
    FormatFiles,
    MayRead,
)
from codeloop.tool.services import ToolServices
from codeloop.workspace.format.formatters import FormattedFile, Formatters
from codeloop.workspace.sandbox.paths.denied_paths import DenyRules
from codeloop.workspace.workspace import Workspace


def make_edit_finisher(
    settings: ProjectSettings, workspace: Workspace, services: ToolServices
) -> EditFinisher:
    """Make the formatting and diagnosis that follow each edit in a project."""
    diagnoser = (
        _LazyDiagnoser(settings, workspace, services) if settings.config.lsp is not False else None
    )
    return EditFinisher(
        _make_format_files(make_formatters(settings, workspace), workspace), diagnoser
    )


def make_formatters(settings: ProjectSettings, workspace: Workspace) -> Formatters:
    """Make the formatters of a project."""
    return Formatters(workspace, settings.config.formatter, trusted=settings.trusted)


def _make_format_files(formatters: Formatters, workspace: Workspace) -> FormatFiles:
    """Return a function that formats edited files;
    their runner is imported for the first file that has one.
    """

    async def format_edited_files(
        files: Sequence[Path], rules: DenyRules | None
    ) -> dict[Path, FormattedFile]:
        formatters_by_file = {
            file: found for file in files if (found := formatters.find_formatters(file))
        }
        if not formatters_by_file:
            return {}
        from codeloop.workspace.format.run_formatters import format_files

        return await format_files(workspace, formatters_by_file, FORMAT_TIME.seconds, rules)

    return format_edited_files


class _LazyDiagnoser:
    """Diagnoses edits. The client for language servers is loaded when a file is edited
    that one of them may serve.
    """

    def __init__(
        self, settings: ProjectSettings, workspace: Workspace, services: ToolServices
    ) -> None:
        self._workspace = workspace
        self._services = services
        # File names and endings, of all servers that are known or configured.
        self._served_names = {name for row in load_server_rows() for name in row.languages}
        if isinstance(settings.config.lsp, dict):
            self._served_names |= {
                name for each in settings.config.lsp.values() for name in each.extensions or ()
            }
        self._diagnoser: Diagnoser | None = None

    async def record_errors(self, changes: Sequence[FileChange]) -> None:
        """Record the diagnostics before the changes."""
        diagnoser = self._get_diagnoser(changes)
        if diagnoser is not None:
            await diagnoser.record_errors(changes)

    async def find_new_errors(
        self, session_id: str, changes: Sequence[FileChange], may_read: MayRead
    ) -> tuple[str, JSON]:
        """Return the new diagnostics after changes: a text for the model,
        and data for the screen.
        """
        diagnoser = self._get_diagnoser(changes)
        return (
            await diagnoser.find_new_errors(session_id, changes, may_read)
            if diagnoser
            else ("", {})
        )

    def _get_diagnoser(self, changes: Sequence[FileChange]) -> Diagnoser | None:
        """Return the diagnoser, made at the first change of a file that a server may serve;
        else None.
        """
        paths = [change.target.real for change in changes]
        if self._diagnoser is None and any(
            path.suffix in self._served_names or path.name in self._served_names for path in paths
        ):
            from codeloop.app.language.edit_diagnoser import EditDiagnoser

            languages = self._services.languages
            if languages is not None:
                self._diagnoser = EditDiagnoser(languages, self._workspace, self._services.notices)
        return self._diagnoser
