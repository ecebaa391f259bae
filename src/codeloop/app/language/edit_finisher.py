"""Makes the `EditFinisher` of a project, which formats edited files and reports new diagnostics."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.lsp.client.diagnostic import Diagnostic, format_new_diagnostics
from codeloop.lsp.client.document import read_text
from codeloop.lsp.diagnostics_tracker import FileEdit
from codeloop.lsp.server_pool import ServerPool
from codeloop.lsp.servers.server_row import load_server_rows
from codeloop.schema.bounds.language_tools import FORMAT_TIME, LSP_FILE_BYTES, LSP_READ_FILES
from codeloop.schema.wire import JSON, replace
from codeloop.tool.files.edit_finisher import (
    Diagnoser,
    EditFinisher,
    FileChange,
    FormatFiles,
    MayRead,
)
from codeloop.tool.files.file_access import format_path
from codeloop.tool.services import Notices, ToolServices
from codeloop.workspace.format.formatters import FormattedFile, Formatters
from codeloop.workspace.sandbox.paths.denied_paths import DenyRules
from codeloop.workspace.workspace import Workspace

_UNREADABLE_MESSAGE = "(this file may not be read)"


class EditDiagnoser:
    """Collects the diagnostics that edits cause. It is the `Diagnoser` of
    `tool.files.edit_finisher`.
    """

    def __init__(self, languages: ServerPool, workspace: Workspace, notices: Notices) -> None:
        self._languages = languages
        self._workspace = workspace
        self._editing_session = ""
        """The id of the session that made the last edit."""
        self._may_read: MayRead = workspace.contains
        """Whether that session may read a file."""
        notices.sources.append(self._take_late_diagnostics)

    async def record_errors(self, changes: Sequence[FileChange]) -> None:
        """Have the servers report the diagnostics before the changes,
        so that only new ones are shown afterwards.
        """
        edits = self._make_edits(changes)
        if edits:
            await self._languages.prepare_for_edits(edits, self._read_texts_at_risk(edits))

    async def find_new_errors(
        self, session_id: str, changes: Sequence[FileChange], may_read: MayRead
    ) -> tuple[str, JSON]:
        """Return the new diagnostics after changes: a text for the model,
        and data for the screen.
        """
        edits = self._make_edits(changes)
        if not edits:
            return "", {}
        self._editing_session, self._may_read = session_id, may_read
        diagnostics = await self._languages.diagnose_edits(edits)
        files = dict.fromkeys([*(edit.path for edit in edits), *(path for path, _ in diagnostics)])
        return self._format(diagnostics), self._languages.collect_diagnostics(
            path for path in files if self._is_readable(path)
        )

    def _take_late_diagnostics(self, session_id: str) -> str:
        """Return the diagnostics that came too late for the results of a session's edits."""
        diagnostics = (
            self._languages.take_late_diagnostics() if session_id == self._editing_session else []
        )
        return self._format(diagnostics, "Earlier edits brought ")

    def _format(self, diagnostics: Sequence[tuple[Path, Diagnostic]], lead: str = "") -> str:
        """Format diagnostics for the model, without messages from files that it may
        not read: these quote code.
        """
        shown = [
            (
                path,
                each
                if self._is_readable(path)
                else replace(each, message=_UNREADABLE_MESSAGE, source="", code=""),
            )
            for path, each in diagnostics
        ]
        return format_new_diagnostics(shown, lambda path: format_path(self._workspace, path), lead)

    def _is_readable(self, path: Path) -> bool:
        return self._may_read(Path(os.path.realpath(path)))

    def _make_edits(self, changes: Sequence[FileChange]) -> list[FileEdit]:
        edits = (self._make_edit(change) for change in changes)
        return [edit for edit in edits if edit is not None]

    def _make_edit(self, change: FileChange) -> FileEdit | None:
        """Return a change for the servers; None if no server serves the file,
        or it is too large.
        """
        if not self._languages.serves(change.target.real) or self._is_large(change):
            return None
        before = change.text_before if change.before is not None else None
        return FileEdit(
            change.target.real, before, None if change.after is None else change.text_after
        )

    def _is_large(self, change: FileChange) -> bool:
        return max(len(change.text_before), len(change.text_after)) > LSP_FILE_BYTES.value

    def _read_texts_at_risk(self, edits: Sequence[FileEdit]) -> Mapping[Path, str]:
        """Return the texts of files that a session has read and that an edit may break:
        those with the same endings.
        """
        endings, edited = {edit.path.suffix for edit in edits}, {edit.path for edit in edits}
        texts: dict[Path, str] = {}
        for path in self._workspace.read_log.list_files():
            if path.suffix not in endings or path in edited or not self._workspace.contains(path):
                continue
            text = read_text(path)
            if text is not None:
                texts[path] = text
            if len(texts) >= LSP_READ_FILES.value:
                break
        return texts


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
            languages = self._services.languages
            if languages is not None:
                self._diagnoser = EditDiagnoser(languages, self._workspace, self._services.notices)
        return self._diagnoser
