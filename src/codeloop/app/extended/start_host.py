"""Starts the program of an extension host, in its own sandbox or in the commands'."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from codeloop.extend.host.extension import Language
from codeloop.extend.host.hosts import HostKey
from codeloop.extend.host.protocol import DESCRIPTOR
from codeloop.extend.host.runtimes import host_command
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.process.program_environment import program_environment
from codeloop.workspace.process.running_program import ProgramOptions, RunningProgram, start_program
from codeloop.workspace.sandbox.process_launcher import Launch
from codeloop.workspace.sandbox.program_profile import ProgramProfile, widen
from codeloop.workspace.workspace import Workspace

_ANYWHERE = Path("/")
"""The directory that a host starts in before it goes to the project's: runtimes load options and code from there."""
_CACHE = "CODELOOP_HOST_CACHE"
"""The variable that names the folder for translated TypeScript; only for the user's extensions, which share it."""
_NETWORK = "extensions"
"""The name of the network proxy's client under which sandboxed hosts reach the same addresses as commands."""


async def start_host(
    workspace: Workspace,
    key: HostKey,
    environment: Mapping[str, str],
    own: Path,
    readable: tuple[Path, ...],
    errors: Callable[[bytes], None],
) -> RunningProgram:
    """Start the program of a language. `own`: its folder; `readable`: others that it needs. Raises OSError."""
    language: Language = "python" if key.language == "python" else "javascript"
    try:
        # The project's programs are those of what runs there, not what runs it.
        search = program_environment(environment, {}, (workspace.root, workspace.directory))
        command = await asyncio.to_thread(host_command, language, search)
    except CodeloopError as error:
        raise OSError(str(error)) from error
    extensions = workspace.sandbox.extensions
    plain = ProgramProfile(own, readable=readable, network="on")
    profile = widen(plain, True if extensions is None else extensions, workspace.root)
    options = ProgramOptions(readable, DESCRIPTOR, key.is_confined, _NETWORK, profile)
    if language == "javascript" and not key.is_confined:
        environment = {**environment, _CACHE: str(own / "typescript")}
    return await start_program(workspace, Launch(command, _ANYWHERE, environment, {}), errors, options)
