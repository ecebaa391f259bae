"""Runs helper programs of a project (formatters, language servers, hooks) in the sandbox of the model's commands."""

import asyncio
import tempfile
from contextlib import ExitStack
from functools import partial

from msgspec import Struct

from codeloop.schema.wire import replace
from codeloop.workspace.git.planted.quarantine import locate_quarantine
from codeloop.workspace.process.child_process import Pipe
from codeloop.workspace.process.uncancelled import finish_uncancelled
from codeloop.workspace.sandbox.launched_process import Launch, LaunchedProcess
from codeloop.workspace.sandbox.policy import NO_GRANTS, PolicyInput, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import protect_own_memory
from codeloop.workspace.sandbox.program_profile import ProgramProfile
from codeloop.workspace.sandbox.protected_files import ProtectedFiles
from codeloop.workspace.sandbox.sandboxes import Sandbox, SandboxUnavailable
from codeloop.workspace.workspace import Workspace

_MAX_ERROR_BYTES = 8_192


class SandboxedResult(Struct, frozen=True):
    """The end of a program: its exit code (negative: the signal), its output, and its stderr."""

    code: int
    output: bytes
    stderr: str


def make_policy(workspace: Workspace, grants: SandboxGrants = NO_GRANTS) -> SandboxPolicy:
    """Return the sandbox policy of a work tree's commands. Reads the disk."""
    return workspace.shells.make_policy(make_policy_input(workspace), workspace.sandbox, grants)


def make_policy_input(workspace: Workspace) -> PolicyInput:
    """Return the input for a work tree's sandbox policies."""
    return PolicyInput(
        workspace.root, workspace.directory, workspace.scratch, workspace.environment, workspace.own_folders
    )


def make_project_profile(workspace: Workspace, name: str) -> ProgramProfile:
    """Return the sandbox profile of a program that may write to the project, as commands may."""
    return ProgramProfile(workspace.scratch.with_name("programs") / name, writable=(workspace.root,))


async def enter_sandbox(workspace: Workspace, grants: SandboxGrants = NO_GRANTS) -> Sandbox | None:
    """Return the sandbox of a work tree's commands, with `grants`; None if it is off or unavailable.

    The user is warned once of a program that runs without one. Raises SandboxUnavailable if the configuration requires
    a sandbox and none works.
    """
    if workspace.sandbox.mode == "off":
        return None
    shells = workspace.shells
    await shells.scan_work_tree(make_policy_input(workspace), workspace.sandbox)
    try:
        return await shells.sandboxes.enter(make_policy(workspace, grants))
    except SandboxUnavailable as error:
        workspace.program_sandboxes.check_optional(error)
        workspace.program_sandboxes.warn_once()
        return None


async def start_sandboxed(workspace: Workspace, launch: Launch, sandbox: Sandbox | None) -> LaunchedProcess:
    """Start a program in a sandbox from `enter_sandbox`, without network. It is ended when the work tree is closed.

    Raises OSError when it can't be started.
    """
    protect_own_memory(launch.environment)
    shells = workspace.shells
    if sandbox is None:
        return await shells.launcher.start(launch)
    environment = shells.sandboxes.make_offline_environment(sandbox, launch.environment, launch.named_variables)
    return await sandbox.starter.start(replace(launch, environment=environment))


async def run_sandboxed(
    workspace: Workspace,
    launch: Launch,
    stdin: bytes,
    max_bytes: int,
    grants: SandboxGrants = NO_GRANTS,
    *,
    shares_command_sandbox: bool = True,
    profile: ProgramProfile | None = None,
) -> SandboxedResult:
    """Run a program to its end with `stdin` as its input. At most `max_bytes` + 1 bytes of its output are kept.

    `shares_command_sandbox`: it runs in the sandbox of the agent's commands, with `grants`; otherwise in its own by
    `profile`, or without one if that is None. It is ended with all its processes when the caller is cancelled. Raises
    OSError when it can't be started, and its subclass SandboxUnavailable if a required sandbox does not work.
    """
    sandbox = await enter_sandbox(workspace, grants) if shares_command_sandbox else None
    protected: ProtectedFiles | None = None
    if sandbox is not None:
        repositories = await workspace.shells.record_repositories(sandbox.policy)
        quarantine = locate_quarantine(workspace.scratch)
        protected = ProtectedFiles(
            sandbox.policy, quarantine, repositories, remember_contents=sandbox.backend == "landlock"
        )
    output, errors = bytearray(), bytearray()
    pipes = (
        Pipe(partial(_append_up_to, output, max_bytes + 1)),
        Pipe(partial(_append_up_to, errors, _MAX_ERROR_BYTES)),
    )
    with ExitStack() as closing:
        for pipe in pipes:
            closing.callback(pipe.close)
        if protected is not None:
            closing.callback(protected.restore)
        stdin_file = closing.enter_context(tempfile.TemporaryFile())
        stdin_file.write(stdin)
        stdin_file.seek(0)
        descriptors = {0: stdin_file.fileno(), 1: pipes[0].writer, 2: pipes[1].writer}
        launch = replace(launch, descriptors=descriptors)
        if profile is not None:
            process = await workspace.program_sandboxes.start(launch, profile)
        else:
            process = await start_sandboxed(workspace, launch, sandbox)
        try:
            for pipe in pipes:
                pipe.listen()
            code = await asyncio.shield(process.exited)
        finally:
            await finish_uncancelled(process.end(0))
    return SandboxedResult(code, bytes(output), errors.decode("utf-8", "replace"))


def _append_up_to(output: bytearray, max_bytes: int, chunk: bytes) -> None:
    output += chunk[: max_bytes - len(output)]
