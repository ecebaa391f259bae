"""Programs that run because of an edit (formatters, language servers): sandboxed like the model's commands."""

import asyncio
import tempfile
from contextlib import ExitStack
from functools import partial

from msgspec import Struct

from codeloop.schema.wire import replace
from codeloop.workspace.process.child_process import Pipe
from codeloop.workspace.sandbox.policy import NO_GRANTS, PolicyInput, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import Launch, LaunchedProcess, finish_uncancelled, protect_own_memory
from codeloop.workspace.sandbox.program_profile import ProgramProfile
from codeloop.workspace.sandbox.protected_files import ProtectedFiles
from codeloop.workspace.sandbox.sandboxes import Sandbox, SandboxRefused
from codeloop.workspace.workspace import Workspace

_ERRORS = 8_192  # bytes


class SandboxedResult(Struct, frozen=True):
    """How a program ended: its exit code (negative: the signal), its output, and its stderr."""

    code: int
    output: bytes
    errors: str


def make_policy(workspace: Workspace, grants: SandboxGrants = NO_GRANTS) -> SandboxPolicy:
    """Return the sandbox policy of a work tree's commands. Looks at the disk."""
    return workspace.shells.make_policy(make_policy_input(workspace), workspace.sandbox, grants)


def make_policy_input(workspace: Workspace) -> PolicyInput:
    """Return the folders and variables from which a work tree's sandbox policies are made."""
    return PolicyInput(workspace.root, workspace.directory, workspace.scratch, workspace.environment, workspace.own)


def make_project_profile(workspace: Workspace, name: str) -> ProgramProfile:
    """Return the sandbox profile of a program that works on the project: it may write there, as commands may."""
    return ProgramProfile(workspace.scratch.with_name("programs") / name, writable=(workspace.root,))


async def enter_sandbox(workspace: Workspace, grants: SandboxGrants = NO_GRANTS) -> Sandbox | None:
    """Return the sandbox of a work tree's commands, with `grants`; None when it is off or unavailable.

    Raises SandboxRefused where the configuration requires one that can't be had.
    """
    if workspace.sandbox.mode == "off":
        return None
    shells = workspace.shells
    await shells.survey(make_policy_input(workspace), workspace.sandbox)
    try:
        return await shells.sandboxes.enter(make_policy(workspace, grants))
    except SandboxRefused:
        if workspace.sandbox.mode == "required":
            raise
        return None


async def start_sandboxed(workspace: Workspace, launch: Launch, sandbox: Sandbox | None) -> LaunchedProcess:
    """Start a program in a sandbox from `enter_sandbox`, without network. It ends when the work tree is closed.

    Raises OSError when it can't be started.
    """
    protect_own_memory(launch.environment)
    shells = workspace.shells
    if sandbox is None:
        return await shells.launcher.start(launch)
    return await sandbox.starter.start(
        replace(launch, environment=shells.sandboxes.make_program_environment(sandbox, launch.environment))
    )


async def run_sandboxed(
    workspace: Workspace,
    launch: Launch,
    stdin: bytes,
    most: int,
    grants: SandboxGrants = NO_GRANTS,
    *,
    is_own: bool = False,
    profile: ProgramProfile | None = None,
) -> SandboxedResult:
    """Run a program to its end, with `stdin` on its stdin; at most `most` + 1 bytes of its output are kept.

    `is_own`: it is a program of the user's, in a sandbox of its own as `profile` says, or for None in none.
    When the caller is cancelled, it is ended with all that it started. Raises OSError when it can't be started, and
    SandboxRefused, which is one, where there has to be a sandbox.
    """
    sandbox = None if is_own else await enter_sandbox(workspace, grants)
    path = workspace.scratch.with_name("set-aside")
    protected: ProtectedFiles | None = None
    if sandbox is not None:
        repositories = await workspace.shells.begin_repositories(sandbox.policy)
        protected = ProtectedFiles(sandbox.policy, path, repositories, remember_contents=sandbox.backend == "landlock")
    output, errors = bytearray(), bytearray()
    pipes = (Pipe(partial(_keep, output, most + 1)), Pipe(partial(_keep, errors, _ERRORS)))
    with ExitStack() as closing:
        for pipe in pipes:
            closing.callback(pipe.close)
        if protected is not None:
            closing.callback(protected.restore)
        feed = closing.enter_context(tempfile.TemporaryFile())
        feed.write(stdin)
        feed.seek(0)
        descriptors = {0: feed.fileno(), 1: pipes[0].writer, 2: pipes[1].writer}
        launch = replace(launch, descriptors=descriptors)
        if profile is not None:
            process = await workspace.boxes.start(launch, profile)
        else:
            process = await start_sandboxed(workspace, launch, sandbox)
        try:
            for pipe in pipes:
                pipe.listen()
            code = await asyncio.shield(process.exited)
        finally:
            await finish_uncancelled(process.end(0))
    return SandboxedResult(code, bytes(output), errors.decode("utf-8", "replace"))


def _keep(tail: bytearray, most: int, chunk: bytes) -> None:
    tail += chunk[: most - len(tail)]
