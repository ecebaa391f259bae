"""The language servers of a project: chosen and started by its configuration and trust."""

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.lsp.client.client import CHANGED, CREATED, DELETED, FileEvent
from codeloop.lsp.client.diagnostic import Diagnostic, format_new_diagnostics
from codeloop.lsp.client.document import read_text
from codeloop.lsp.diagnostics_tracker import FileEdit
from codeloop.lsp.server import ServerCallbacks
from codeloop.lsp.server_pool import ServerPool
from codeloop.lsp.servers.choice import ProgramSearch, ServerChoice, list_servers
from codeloop.lsp.servers.server_row import ServerRow
from codeloop.schema.bounds.language_tools import (
    LSP_DEPENDENT_FILES,
    LSP_DEPENDENT_FILES_TIME,
    LSP_FILE_BYTES,
    LSP_READ_FILES,
)
from codeloop.schema.live_events import FileWatched, LiveEvent, LspDiagnosed, LspFile, LspUpdated, Toast, ToastShown
from codeloop.schema.wire import JSON, replace
from codeloop.tool.edit_finisher import FileChange, MayRead
from codeloop.tool.file_access import format_path as shown_path
from codeloop.tool.services import Notices
from codeloop.workspace.process.program_environment import tool_environment
from codeloop.workspace.process.program_log import ProgramLog
from codeloop.workspace.process.running_program import ProgramOptions, RunningProgram, start_program
from codeloop.workspace.process.sandboxed_program import make_project_profile
from codeloop.workspace.sandbox.process_launcher import Launch
from codeloop.workspace.sandbox.program_profile import widen
from codeloop.workspace.search.rg_output import GrepQuery, SearchFailed
from codeloop.workspace.watch.project_watch import ProjectWatch
from codeloop.workspace.workspace import Workspace

_EVENTS: dict[str, FileEvent] = {"add": CREATED, "change": CHANGED, "unlink": DELETED}
_NAMED_BY_FOLDER = frozenset(("__init__", "index", "mod"))
"""Files that others import by the name of their folder."""
_UNREADABLE = "(this file may not be read)"
_USES = (
    (
        r"\b(import|from|include|require\w*|use|using|mod|alias|open|source|extends|load)\b.*\bNAME\b"
        r"|^\s*NAME(\s+as\s+\w+)?,?\s*\)?$"
    ),
    r"\bNAME\b",
)
"""How a file names one that it uses: as imports do; where none does, somewhere."""
Tell = Callable[[LiveEvent], None]


def choose_servers(settings: ProjectSettings) -> tuple[ServerChoice, ...]:
    """Return every server that is known, with what becomes of it in this project."""
    place = settings.project_root
    where = ProgramSearch(
        place.root, place.directory, settings.trusted, settings.environment.get("PATH", ""), install_folder(settings)
    )
    return list_servers(settings.config.lsp, where, warnings=settings.config.lsp_warnings)


def install_folder(settings: ProjectSettings) -> Path:
    """Return the folder that `codeloop lsp install` fills."""
    return settings.paths.data / "lsp"


def log_of(settings: ProjectSettings, name: str) -> ProgramLog:
    """Return the log of a server in this project."""
    return ProgramLog(settings.home / "lsp" / f"{Path(name).name}.log")


def restart_file(settings: ProjectSettings, name: str) -> Path:
    """Return the file whose time says when the user last wanted a server to be started anew."""
    return settings.home / "lsp" / f"{Path(name).name}.restart"


def make_languages(settings: ProjectSettings, workspace: Workspace, tell: Tell) -> ServerPool:
    """Return the language servers of a project; none is started by that."""
    logs: dict[str, ProgramLog] = {}

    def log(name: str) -> ProgramLog:
        return logs.setdefault(name, log_of(settings, name))

    async def start(chosen_server: ServerChoice, root: Path) -> RunningProgram:
        return await start_server(settings, workspace, chosen_server, root, log(chosen_server.row.name).feed)

    def restarts(name: str) -> float:
        try:
            return restart_file(settings, name).stat().st_mtime
        except OSError:
            return 0.0

    callbacks = ServerCallbacks(
        start=start,
        log=lambda name, line: log(name).note(f"[{time.strftime('%H:%M:%S')} codeloop: {line}]"),
        on_change=lambda: tell(LspUpdated()),
        on_report=lambda name, path: tell(LspDiagnosed(properties=LspFile(server_id=name, path=str(path)))),
        warn=lambda text: tell(ToastShown(properties=Toast(message=text, variant="warning"))),
        watch=lambda is_wanted: watch.switch(on=is_wanted),
        find_dependents=lambda path, row: users_of(workspace, path, row),
    )
    languages = ServerPool(choose_servers(settings), workspace.root, callbacks, restarts)

    def pass_on(event: LiveEvent) -> None:
        if isinstance(event, FileWatched):
            languages.notify_changed(Path(event.properties.file), _EVENTS[event.properties.event])

    watch = ProjectWatch(workspace, settings.config.watcher.ignore, pass_on, lambda: None)
    return languages


async def start_server(
    settings: ProjectSettings,
    workspace: Workspace,
    chosen_server: ServerChoice,
    root: Path,
    errors: Callable[[bytes], None],
) -> RunningProgram:
    """Start a server's program as its row and the sandbox have it; `errors` takes what it writes to stderr.

    Raises OSError.
    """
    kept_from = () if settings.trusted else (workspace.root, workspace.directory)
    environment = tool_environment(workspace.environment, chosen_server.row.environment, kept_from)
    launch = Launch(chosen_server.command, root, environment, {})
    ours = install_folder(settings)
    own = (ours,) if Path(chosen_server.command[0]).is_relative_to(ours) else ()
    sandbox, profile = chosen_server.row.sandbox, None
    if not isinstance(sandbox, bool):
        profile = widen(make_project_profile(workspace, chosen_server.row.name), sandbox, workspace.root)
    options = ProgramOptions(own, confined=sandbox is True, profile=profile)
    return await start_program(workspace, launch, errors, options)


async def users_of(workspace: Workspace, path: Path, row: ServerRow) -> list[Path] | None:
    """Return files that seem to use one, since they name it as imports do; those that were changed last first.

    None: the search took too long.
    """
    name = path.parent.name if path.stem in _NAMED_BY_FOLDER else path.stem
    endings = ",".join(sorted(each.removeprefix(".") for each in row.languages if each.startswith(".")))
    files: list[Path] = []
    try:
        async with asyncio.timeout(LSP_DEPENDENT_FILES_TIME.seconds):
            for pattern in _USES:
                query = GrepQuery(pattern.replace("NAME", re.escape(name)), f"*.{{{endings}}}", "files")
                grep_result = await workspace.ripgrep.grep(workspace.root, query, workspace.environment)
                real = [
                    Path(os.path.realpath(each.path)) for each in grep_result.files[: LSP_DEPENDENT_FILES.value + 1]
                ]
                if files := [each for each in real if each != path and workspace.contains(each)]:
                    break
    except TimeoutError:
        return None
    except SearchFailed:
        return []
    return files[: LSP_DEPENDENT_FILES.value]


class EditDiagnoser:
    """Shows edits to the language servers, and what they say of them to the model."""

    def __init__(self, languages: ServerPool, workspace: Workspace, notices: Notices) -> None:
        self._languages = languages
        self._workspace = workspace
        self._editor = ""
        """The session that made the last edit."""
        self._may_read: MayRead = workspace.contains
        """What that session may read."""
        notices.sources.append(self._take_late_diagnostics)

    async def record_errors(self, changes: Sequence[FileChange]) -> None:
        """Have the servers learn what is wrong before the changes are made."""
        edits = [edit for change in changes if (edit := self._edit(change)) is not None]
        if edits:
            await self._languages.prepare_for_edits(edits, self._texts_at_risk(edits))

    async def find_new_errors(
        self, session_id: str, changes: Sequence[FileChange], may_read: MayRead
    ) -> tuple[str, JSON]:
        """Return the new diagnostics after changes: a text for the model, and data for the screen."""
        edits = [edit for change in changes if (edit := self._edit(change)) is not None]
        if not edits:
            return "", {}
        self._editor, self._may_read = session_id, may_read
        diagnostics = await self._languages.diagnose_edits(edits)
        files = dict.fromkeys([*(edit.path for edit in edits), *(path for path, _ in diagnostics)])
        return self._format(diagnostics), self._languages.collect_diagnostics(
            path for path in files if self._is_readable(path)
        )

    def _take_late_diagnostics(self, session_id: str) -> str:
        """Return the diagnostics that came too late for the results of a session's edits."""
        diagnostics = self._languages.take_late_diagnostics() if session_id == self._editor else []
        return self._format(diagnostics, "Earlier edits brought ")

    def _format(self, diagnostics: Sequence[tuple[Path, Diagnostic]], lead: str = "") -> str:
        """Return diagnostics for the model. Of a file that it may not read, only where they are: they quote it."""
        rows = [
            (path, each if self._is_readable(path) else replace(each, message=_UNREADABLE, source="", code=""))
            for path, each in diagnostics
        ]
        return format_new_diagnostics(rows, lambda path: shown_path(self._workspace, path), lead)

    def _is_readable(self, path: Path) -> bool:
        return self._may_read(Path(os.path.realpath(path)))

    def _edit(self, change: FileChange) -> FileEdit | None:
        if not self._languages.serves(change.target.real) or self._is_large(change):
            return None
        before = change.text_before if change.before is not None else None
        return FileEdit(change.target.real, before, None if change.after is None else change.text_after)

    def _is_large(self, change: FileChange) -> bool:
        return max(len(change.text_before), len(change.text_after)) > LSP_FILE_BYTES.value

    def _texts_at_risk(self, edits: Sequence[FileEdit]) -> Mapping[Path, str]:
        """Return the texts of files that a session has read and that an edit may break."""
        kinds, edited = {edit.path.suffix for edit in edits}, {edit.path for edit in edits}
        texts: dict[Path, str] = {}
        for path in self._workspace.read_log.list_files():
            if path.suffix not in kinds or path in edited or not self._workspace.contains(path):
                continue
            if (text := read_text(path)) is not None:
                texts[path] = text
            if len(texts) >= LSP_READ_FILES.value:
                break
        return texts
