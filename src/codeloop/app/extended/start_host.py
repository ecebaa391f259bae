"""A host's program, started: outside of the sandbox of commands, or in it."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from codeloop.extend.host.extension import Language
from codeloop.extend.host.hosts import HostKey
from codeloop.extend.host.protocol import DESCRIPTOR
from codeloop.extend.host.runtimes import host_command
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.process.conversation import ProgramTerms, RunningProgram, start_program
from codeloop.workspace.sandbox.process_launcher import Launch
from codeloop.workspace.workspace import Workspace

_NETWORK = "extensions"
"""The name under which those in the sandbox reach what commands reach of the network."""


async def start_host(
    workspace: Workspace,
    key: HostKey,
    environment: Mapping[str, str],
    readable: tuple[Path, ...],
    errors: Callable[[bytes], None],
) -> RunningProgram:
    """Start the program of a language. `readable`: folders that it needs besides. Raises OSError: what is missing."""
    language: Language = "python" if key.language == "python" else "javascript"
    try:
        command = await asyncio.to_thread(host_command, language, environment)
    except CodeloopError as error:
        raise OSError(str(error)) from error
    terms = ProgramTerms(readable, DESCRIPTOR, key.is_confined, _NETWORK)
    return await start_program(workspace, Launch(command, workspace.directory, environment, {}), errors, terms)
