"""The language servers of a project: which of them may run, and how they are started."""

import asyncio
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.kit.child_process import Launch
from codeloop.kit.program import Program, mark_environment
from codeloop.lsp.client.client import CHANGED, CREATED, DELETED, FileEvent
from codeloop.lsp.server import ServerCallbacks
from codeloop.lsp.server_pool import ServerPool
from codeloop.lsp.servers.choice import ProgramSearch, ServerChoice, list_servers
from codeloop.lsp.servers.environments import (
    Places,
    activate_python,
    find_places,
    list_python_folders,
)
from codeloop.lsp.servers.server_row import ServerRow
from codeloop.schema.bounds.language_tools import LSP_DEPENDENT_FILES, LSP_DEPENDENT_FILES_TIME
from codeloop.schema.live_events import (
    FileWatched,
    LiveEvent,
    LspDiagnosed,
    LspUpdated,
    Toast,
    ToastShown,
)
from codeloop.schema.resources import LspFile
from codeloop.workspace.process.program_environment import make_tool_environment
from codeloop.workspace.process.program_log import ProgramLog
from codeloop.workspace.process.program_sandboxes import ProgramSandbox, choose_program_sandbox
from codeloop.workspace.search.grep_query import GrepQuery, SearchFailed
from codeloop.workspace.watch.project_watch import ProjectWatch
from codeloop.workspace.workspace import Workspace

_NAMED_BY_FOLDER = frozenset(("__init__", "index", "mod"))
"""Names of files that others import by the name of their folder, without endings."""
_USE_PATTERNS = (
    (
        r"\b(import|from|include|require\w*|use|using|mod|alias|open|source|extends|load)\b.*\bNAME\b"
        r"|^\s*NAME(\s+as\s+\w+)?,?\s*\)?$"
    ),
    r"\bNAME\b",
)
"""Patterns for a file that uses the file NAME: an import of it;
if no file has one, NAME as a word anywhere.
"""


async def find_dependents(workspace: Workspace, path: Path, row: ServerRow) -> list[Path] | None:
    """Return files that seem to use a file, since they import something of its name;
    the last changed ones first.

    None: the search took too long. Servers only report on files that they know,
    so these are opened as well.
    """
    name = path.parent.name if path.stem in _NAMED_BY_FOLDER else path.stem
    endings = ",".join(
        sorted(each.removeprefix(".") for each in row.languages if each.startswith("."))
    )
    files: list[Path] = []
    try:
        async with asyncio.timeout(LSP_DEPENDENT_FILES_TIME.seconds):
            for pattern in _USE_PATTERNS:
                query = GrepQuery(
                    pattern.replace("NAME", re.escape(name)), f"*.{{{endings}}}", "files"
                )
                grep_result = await workspace.ripgrep.grep(
                    workspace.root, query, workspace.environment
                )
                # One more than wanted, since the file itself may be among them.
                candidates = [
                    Path(os.path.realpath(each.path))
                    for each in grep_result.files[: LSP_DEPENDENT_FILES.value + 1]
                ]
                files = [each for each in candidates if each != path and workspace.contains(each)]
                if files:
                    break
    except TimeoutError:
        return None
    except SearchFailed:
        return []
    return files[: LSP_DEPENDENT_FILES.value]


_FILE_EVENTS: dict[str, FileEvent] = {"add": CREATED, "change": CHANGED, "unlink": DELETED}
PublishLive = Callable[[LiveEvent], None]


def choose_servers(settings: ProjectSettings) -> tuple[ServerChoice, ...]:
    """Return all known servers, each with its state in this project: found, missing,
    disabled or untrusted.
    """
    root, directory = settings.project_root.root, settings.project_root.directory
    search_path = settings.environment.get("PATH", "")
    search = ProgramSearch(
        root=root,
        directory=directory,
        is_trusted=settings.trusted,
        path=search_path,
        installed=find_install_folder(settings),
    )
    return list_servers(settings.config.lsp, search, warnings=settings.config.lsp_warnings)


def find_install_folder(settings: ProjectSettings) -> Path:
    """Return the folder that `codeloop lsp install` installs servers in."""
    return settings.paths.data / "lsp"


def open_server_log(settings: ProjectSettings, name: str) -> ProgramLog:
    """Open the log of a server in this project."""
    return ProgramLog(settings.home / "lsp" / f"{Path(name).name}.log")


def find_restart_file(settings: ProjectSettings, name: str) -> Path:
    """Return the file that `codeloop lsp restart` touches: a server that started before
    its time is started again.
    """
    return settings.home / "lsp" / f"{Path(name).name}.restart"


def make_languages(
    settings: ProjectSettings, workspace: Workspace, publish_live: PublishLive
) -> ServerPool:
    """Make the language servers of a project; none is started yet."""
    logs: dict[str, ProgramLog] = {}

    def get_log(name: str) -> ProgramLog:
        return logs.setdefault(name, open_server_log(settings, name))

    async def start(chosen_server: ServerChoice, root: Path) -> Program:
        return await start_server(
            settings, workspace, chosen_server, root, get_log(chosen_server.row.name).feed
        )

    def read_restart_time(name: str) -> float:
        try:
            return find_restart_file(settings, name).stat().st_mtime
        except OSError:
            return 0.0

    callbacks = ServerCallbacks(
        start=start,
        log=lambda name, line: get_log(name).add_line(
            f"[{time.strftime('%H:%M:%S')} codeloop: {line}]"
        ),
        on_change=lambda: publish_live(LspUpdated()),
        on_report=lambda name, path: publish_live(
            LspDiagnosed(properties=LspFile(server_id=name, path=str(path)))
        ),
        warn=lambda text: publish_live(
            ToastShown(properties=Toast(message=text, variant="warning"))
        ),
        watch=lambda is_wanted: watch.switch(on=is_wanted),
        find_dependents=lambda path, row: find_dependents(workspace, path, row),
        find_places=lambda row, root: find_server_places(settings, workspace, row, root),
        explain=lambda chosen_server, root, reason: explain_failure(
            settings,
            workspace,
            chosen_server,
            root,
            f"{reason}\n{get_log(chosen_server.row.name).recent_text}",
        ),
    )
    languages = ServerPool(choose_servers(settings), workspace.root, callbacks, read_restart_time)

    def notify_servers(event: LiveEvent) -> None:
        if isinstance(event, FileWatched):
            languages.notify_changed(
                Path(event.properties.file), _FILE_EVENTS[event.properties.event]
            )

    watch = ProjectWatch(workspace, settings.config.watcher.ignore, notify_servers, lambda: None)
    return languages


def find_server_places(
    settings: ProjectSettings, workspace: Workspace, row: ServerRow, root: Path
) -> Places:
    """Find the project's environment for a server, by the variables that it gets."""
    variables = {**workspace.environment, **row.environment}
    return find_places(root, workspace.root, variables, is_trusted=settings.trusted)


async def start_server(
    settings: ProjectSettings,
    workspace: Workspace,
    chosen_server: ServerChoice,
    root: Path,
    on_stderr: Callable[[bytes], None],
) -> Program:
    """Start a server's program, in the sandbox that its row names;
    `on_stderr` is called with its output on stderr.

    Raises OSError.
    """
    launch, confinement = _make_launch(settings, workspace, chosen_server, root)
    return await workspace.program_sandboxes.open(launch, confinement, on_stderr)


def explain_failure(
    settings: ProjectSettings,
    workspace: Workspace,
    chosen_server: ServerChoice,
    root: Path,
    text: str,
) -> str:
    """Return a line on what the sandbox refused to a server that has failed, by what it says;
    "": nothing.
    """
    # Imported late: most servers don't fail.
    from codeloop.workspace.process.program_refusals import Said, explain_run

    launch, confinement = _make_launch(settings, workspace, chosen_server, root)
    allowing = f"codeloop lsp allow {chosen_server.row.name}"
    return explain_run(workspace.program_sandboxes, launch, confinement, Said(text), allowing)


def _make_launch(
    settings: ProjectSettings, workspace: Workspace, chosen_server: ServerChoice, root: Path
) -> tuple[Launch, ProgramSandbox | None]:
    """Return the launch of a server's program, and its sandbox; None: none."""
    # Of an untrusted project no program must run, so its folders are taken out of PATH.
    excluded_folders = () if settings.trusted else (workspace.root, workspace.directory)
    row = chosen_server.row
    places = find_server_places(settings, workspace, row, root)
    variables = activate_python(workspace.environment, places)
    environment = make_tool_environment(variables, row.environment, excluded_folders)
    launch = Launch(
        chosen_server.command,
        root,
        mark_environment(environment),
        named_variables=frozenset(row.environment),
    )
    # A sandbox hides codeloop's own folders, and so the servers that were installed there.
    installed = find_install_folder(settings)
    readable_folders = (
        [installed] if Path(chosen_server.command[0]).is_relative_to(installed) else []
    )
    readable_folders += list_python_folders(places)
    readable = ProgramSandbox(readable=tuple(readable_folders))
    return launch, choose_program_sandbox(workspace, row.name, row.sandbox, launch, readable)
