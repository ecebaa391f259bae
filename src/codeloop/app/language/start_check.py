"""Starts each language server that was found, as a test: an installed program may fail.
For `codeloop lsp list`.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.app.language.servers import explain_failure, start_server
from codeloop.app.settings import ProjectSettings
from codeloop.kit.program import Program
from codeloop.kit.text.terminal_text import one_line
from codeloop.lsp.server import LanguageServer, ServerCallbacks, ServerUnavailable, StartServer
from codeloop.lsp.servers.choice import ServerChoice
from codeloop.lsp.servers.server_row import ServerRow
from codeloop.schema.bounds.language_tools import LSP_TRIAL
from codeloop.workspace.workspace import Workspace

# Language servers use much memory and processor time while they start.
_MAX_PARALLEL_STARTS = 4
_STDERR_BYTES = 4_000
"""The end of a server's output that is searched for the cause of its failure."""
_MAX_PROBLEM_CHARS = 200


class StartCheck(Struct, frozen=True):
    """The result of a test start.

    `problem`: the reason why the server can't start, or "".
    `is_sandboxed`: whether the server runs in a sandbox.
    """

    problem: str
    is_sandboxed: bool


async def check_servers(
    settings: ProjectSettings, servers: Sequence[ServerChoice]
) -> dict[str, StartCheck]:
    """Start, initialize and stop each of the servers; return the results by the servers' names."""
    project_root = settings.project_root
    workspace = Workspace(
        project_root.root,
        project_root.directory,
        project_root.get_scratch_folder(settings.home),
        dict(settings.environment),
        settings.config.sandbox,
        settings.paths.private_folders,
    )
    semaphore = asyncio.Semaphore(_MAX_PARALLEL_STARTS)

    async def check(chosen_server: ServerChoice) -> StartCheck:
        async with semaphore:
            problem = await _start_once(settings, workspace, chosen_server)
        return StartCheck(problem, chosen_server.row.sandbox is not False and is_sandboxed)

    try:
        is_sandboxed = await workspace.program_sandboxes.enter_command_sandbox() is not None
        return dict(
            zip(
                (each.row.name for each in servers),
                await asyncio.gather(*map(check, servers)),
                strict=True,
            )
        )
    finally:
        await workspace.close()


async def _start_once(
    settings: ProjectSettings, workspace: Workspace, chosen_server: ServerChoice
) -> str:
    """Start a server and stop it again; return the reason why it can't start, or ""."""
    output = bytearray()

    async def start(chosen: ServerChoice, root: Path) -> Program:
        return await start_server(settings, workspace, chosen, root, output.extend)

    server = LanguageServer(chosen_server, workspace.root, _make_callbacks(start))
    try:
        async with asyncio.timeout(LSP_TRIAL.seconds):
            await server.connect()
    except TimeoutError:
        return f"it did not answer within {LSP_TRIAL.seconds:.0f} s"
    except ServerUnavailable:
        lines = [
            line.strip()
            for line in output[-_STDERR_BYTES:].decode("utf-8", "replace").splitlines()
            if line.strip()
        ]
        cause = next(
            (line for line in lines if "error" in line.lower()), lines[-1] if lines else ""
        )
        problem = one_line(
            ": ".join(each for each in (server.failure_reason, cause) if each), _MAX_PROBLEM_CHARS
        )
        said = f"{server.failure_reason}\n" + "\n".join(lines)
        note = explain_failure(settings, workspace, chosen_server, workspace.root, said)
        return f"{problem}. {note}" if note else problem
    finally:
        await server.stop()
    return ""


def _make_callbacks(start: StartServer) -> ServerCallbacks:
    """Return callbacks of which only `start` does something: a test start needs no events."""

    async def find_no_dependents(_path: Path, _row: ServerRow) -> list[Path] | None:
        return []

    return ServerCallbacks(
        start=start,
        log=lambda _name, _line: None,
        on_change=lambda: None,
        on_report=lambda _name, _path: None,
        warn=lambda _text: None,
        watch=lambda _is_wanted: None,
        find_dependents=find_no_dependents,
    )
