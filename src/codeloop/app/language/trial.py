"""Test-starts each found language server, since an installed program may not run."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from codeloop.app.language.servers import start_server
from codeloop.app.settings import ProjectSettings
from codeloop.kit.terminal_text import one_line
from codeloop.lsp.server import LanguageServer, ServerCallbacks, ServerUnavailable, StartServer
from codeloop.lsp.servers.choice import ServerChoice
from codeloop.lsp.servers.row import ServerRow
from codeloop.schema.bounds.language import LSP_TRIAL
from codeloop.workspace.process.running_program import RunningProgram
from codeloop.workspace.process.sandboxed_program import enter_sandbox
from codeloop.workspace.workspace import Workspace

_AT_ONCE = 4
_STDERR = 4_000  # bytes
_WIDTH = 200


class Trial(Struct, frozen=True):
    """What came of starting a server. `problem`: why it can't be started, "" when it can; `is_boxed`: in a sandbox."""

    problem: str
    is_boxed: bool


async def try_servers(settings: ProjectSettings, servers: Sequence[ServerChoice]) -> dict[str, Trial]:
    """Start servers that were found, greet each and end it again; return what came of it by their names."""
    place = settings.project_root
    workspace = Workspace(
        place.root,
        place.directory,
        place.scratch(settings.home),
        dict(settings.environment),
        settings.config.sandbox,
        settings.paths.own,
    )
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(chosen_server: ServerChoice) -> Trial:
        async with turns:
            problem = await _try(settings, workspace, chosen_server)
        return Trial(problem, chosen_server.row.sandbox is not False and is_boxed)

    try:
        is_boxed = await enter_sandbox(workspace) is not None
        return dict(zip((each.row.name for each in servers), await asyncio.gather(*map(one, servers)), strict=True))
    finally:
        await workspace.close()


async def _try(settings: ProjectSettings, workspace: Workspace, chosen_server: ServerChoice) -> str:
    output = bytearray()

    async def start(chosen: ServerChoice, root: Path) -> RunningProgram:
        return await start_server(settings, workspace, chosen, root, output.extend)

    server = LanguageServer(chosen_server, workspace.root, _make_callbacks(start))
    try:
        async with asyncio.timeout(LSP_TRIAL.seconds):
            await server.connect()
    except TimeoutError:
        return f"it did not answer within {LSP_TRIAL.seconds:.0f} s"
    except ServerUnavailable:
        lines = [line.strip() for line in output[-_STDERR:].decode("utf-8", "replace").splitlines() if line.strip()]
        cause = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
        return one_line(": ".join(each for each in (server.reason, cause) if each), _WIDTH)
    finally:
        await server.stop()
    return ""


def _make_callbacks(start: StartServer) -> ServerCallbacks:
    """Return callbacks that do nothing: nobody follows this server."""

    async def users(_path: Path, _row: ServerRow) -> list[Path] | None:
        return []

    return ServerCallbacks(
        start=start,
        log=lambda _name, _line: None,
        on_change=lambda: None,
        on_report=lambda _name, _path: None,
        warn=lambda _text: None,
        watch=lambda _is_wanted: None,
        find_users=users,
    )
