"""Starts the program of an extension host: in a sandbox of its own, or in the one for commands.

Imported when the first host starts; a project whose extensions are not called starts none.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from codeloop.extend.host.extension import Language
from codeloop.extend.host.host_callbacks import HostKey
from codeloop.extend.host.protocol import DESCRIPTOR_VARIABLE
from codeloop.extend.host.runtimes import find_host_command
from codeloop.kit.child_process import Launch
from codeloop.kit.program import Program
from codeloop.schema.errors import CodeloopError
from codeloop.workspace.process.program_environment import make_program_environment
from codeloop.workspace.process.program_sandboxes import ProgramSandbox
from codeloop.workspace.sandbox.program_profile import ProgramProfile, widen_profile
from codeloop.workspace.workspace import Workspace

# Runtimes load options and code from the directory that they start in, so it is not the project's.
# The host changes to the project's directory afterwards.
_START_DIRECTORY = Path("/")
_CACHE_VARIABLE = "CODELOOP_HOST_CACHE"
"""The variable that names the folder for translated TypeScript."""
_NETWORK_CLIENT = "extensions"
"""The name of hosts at the network proxy, which lets sandboxed hosts reach the
same addresses as commands.
"""


async def start_host(
    workspace: Workspace,
    key: HostKey,
    environment: Mapping[str, str],
    writable_folder: Path,
    readable: tuple[Path, ...],
    on_stderr: Callable[[bytes], None],
) -> Program:
    """Start the host for a language. Raises OSError.

    `writable_folder`: the folder that it may write in. `readable`: other paths that it loads code
    from. `on_stderr` is called with its output on stderr.
    """
    language: Language = "python" if key.language == "python" else "javascript"
    try:
        # Without the project's folders in PATH: a runtime that lies in the project may not
        # run the user's extensions.
        search_environment = make_program_environment(
            environment, {}, (workspace.root, workspace.directory)
        )
        command = await asyncio.to_thread(find_host_command, language, search_environment)
    except CodeloopError as error:
        raise OSError(str(error)) from error
    extensions = workspace.sandbox.extensions
    base_profile = ProgramProfile(writable_folder, readable=readable, network="on")
    # Without a setting they have a sandbox of their own.
    profile = widen_profile(
        base_profile, True if extensions is None else extensions, workspace.root
    )
    if key.is_confined:
        # In the sandbox for commands, instead of one of its own.
        confinement = ProgramSandbox(readable=readable, client=_NETWORK_CLIENT)
    else:
        confinement = ProgramSandbox(profile) if profile is not None else None
    # Extensions of a project get no cache: it is shared,
    # and they could change what the user's own would run.
    if language == "javascript" and not key.is_confined:
        environment = {**environment, _CACHE_VARIABLE: str(writable_folder / "typescript")}
    launch = Launch(command, _START_DIRECTORY, environment)
    return await workspace.program_sandboxes.open(
        launch, confinement, on_stderr, channel_variable=DESCRIPTOR_VARIABLE
    )
