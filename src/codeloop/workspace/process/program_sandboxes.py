"""Makes the sandbox of all that runs in one: commands, formatters, language servers, MCP servers,
hooks, extensions.

`work_tree_policies.py` makes that of commands, `ProgramSandboxes.start` starts any other program:
in the sandbox of commands, or in one of its own, so that none shares a network or `/tmp` with
another (docs/decisions/0023 says why). Whatever its sandbox, it may not read or change what rules
deny, and what may not appear in the project is moved away at once.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from codeloop.kit.child_process import Launch
from codeloop.kit.program import Program, ProgramResult, run_program
from codeloop.schema.config import ProgramSandboxConfig
from codeloop.schema.limits import MCP_STOP, SHELL_TERM_TIME
from codeloop.schema.wire import replace
from codeloop.workspace.git.planted.quarantine import locate_quarantine
from codeloop.workspace.process.program_network import ProgramNetwork, connect_program
from codeloop.workspace.process.sandboxed_program import SandboxedProcess
from codeloop.workspace.process.work_tree_policies import (
    WorkTree,
    add_limits,
    make_policy,
    make_policy_input,
    make_watch,
)
from codeloop.workspace.sandbox.git_folders import GitFolders
from codeloop.workspace.sandbox.paths.denied_paths import NO_RULES, DenyRules
from codeloop.workspace.sandbox.paths.linked_paths import is_below_any
from codeloop.workspace.sandbox.paths.restricted_paths import TEMPORARY_FOLDERS
from codeloop.workspace.sandbox.paths.secret_files import find_home_secrets
from codeloop.workspace.sandbox.policy import NO_GRANTS, SandboxGrants, SandboxPolicy
from codeloop.workspace.sandbox.process_launcher import ProcessLauncher, protect_own_memory
from codeloop.workspace.sandbox.program_profile import (
    ProfilePolicyMaker,
    ProgramProfile,
    widen_profile,
)
from codeloop.workspace.sandbox.sandbox import Sandbox, SandboxUnavailable
from codeloop.workspace.sandbox.sandboxes import Sandboxes

_CLIENT = "program"
"""The name of a program in a sandbox of its own at its network proxy."""
_REFUSAL_WARNING = (
    "No sandbox can be had on this machine, so {} run without one: as you. "
    "`codeloop debug sandbox` says why."
)


class ProgramSandbox(Struct, frozen=True):
    """The sandbox of one program.

    - `profile`: of a sandbox of its own; None: it runs in the sandbox of the agent's commands
    - `readable`: there, folders of ours that it may read;
      `client`: its name at the proxy there, "": it has no network
    - `rules`: those that bind it; None: the project's
    """

    profile: ProgramProfile | None = None
    readable: tuple[Path, ...] = ()
    client: str = ""
    rules: DenyRules | None = None


class PrivatePlaces(NamedTuple):
    """What only one program sees. `folders`: by the paths that it has for them;
    `shown`: paths in these that everybody sees.
    """

    folders: dict[Path, Path]
    shown: Sequence[Path]


def choose_program_sandbox(
    workspace: WorkTree,
    name: str,
    entry: bool | ProgramSandboxConfig,
    launch: Launch,
    confinement: ProgramSandbox,
) -> ProgramSandbox | None:
    """Return the sandbox of a program that may write to the project: that of commands,
    or one of its own; None: none.

    `entry`: what the configuration says of the program's sandbox; `confinement`: what it reads
    besides, and its rules.
    """
    if isinstance(entry, bool):
        return confinement if entry else None
    profile = ProgramProfile(
        workspace.scratch.with_name("programs") / name,
        writable=(workspace.root,),
        readable=confinement.readable,
        named=tuple(_find_named_code(workspace, launch)),
    )
    return replace(confinement, profile=widen_profile(profile, entry, workspace.root))


def _find_named_code(workspace: WorkTree, launch: Launch) -> Sequence[Path]:
    # Imported late: a text answer starts no program.
    from codeloop.workspace.sandbox.named_paths import find_named_paths

    home = Path(workspace.environment.get("HOME") or "/nonexistent")
    roots = (workspace.root, workspace.directory)
    return find_named_paths(launch.arguments, (), home, roots=roots).code


class ProgramSandboxes:
    """Starts a work tree's programs in their sandboxes.
    `refusal_reason`: why none can be had here, once that is known.

    `warn` is called with a text for the user when one of the `programs` first runs
    without one for that reason.
    """

    def __init__(self, workspace: WorkTree, warn: Callable[[str], None], programs: str) -> None:
        self.refusal_reason = ""
        self.environment = workspace.environment
        self._workspace = workspace
        self._warn = warn
        self._programs = programs
        self._has_warned = False
        self._launcher = ProcessLauncher()
        self._sandboxes_by_folder: dict[Path, Sandboxes] = {}
        self._policy_makers: dict[ProgramProfile, ProfilePolicyMaker] = {}
        self._launches: dict[Path, tuple[Launch, ProgramProfile]] = {}
        """The last launch in each sandbox of its own, by the program's folder."""

    def is_sandboxed(self, entry: bool | ProgramSandboxConfig) -> bool:
        """Return whether a program with this configuration entry runs in a sandbox (or not at all),
        as far as known.
        """
        mode = self._workspace.sandbox.mode
        return entry is not False and (
            mode == "required" or (mode == "auto" and not self.refusal_reason)
        )

    async def probe(self) -> None:
        """Find out whether a sandbox works by making one, unless that is known."""
        is_known = self._sandboxes_by_folder or self.refusal_reason
        if is_known or self._workspace.sandbox.mode == "off":
            return
        sandboxes = Sandboxes(self._launcher)
        try:
            await sandboxes.enter(
                self._find_policy_maker(ProgramProfile(self._workspace.scratch)).make_policy()
            )
        except SandboxUnavailable as error:
            self.refusal_reason = str(error)
        finally:
            await sandboxes.close()

    async def enter_command_sandbox(
        self, grants: SandboxGrants = NO_GRANTS, rules: DenyRules | None = None
    ) -> Sandbox | None:
        """Return the sandbox of the work tree's commands, with `grants`;
        None if it is off or unavailable.

        The user is warned once of a program that runs without one. Raises SandboxUnavailable if the
        configuration requires a sandbox and none works.
        """
        workspace = self._workspace
        if workspace.sandbox.mode == "off":
            return None
        await workspace.shells.scan_work_tree(make_policy_input(workspace), workspace.sandbox)
        try:
            return await workspace.shells.sandboxes.enter(make_policy(workspace, grants, rules))
        except SandboxUnavailable as error:
            self._check_optional(error)
            self.refusal_reason = str(error)
            self._warn_once()
            return None

    async def run(self, launch: Launch, confinement: ProgramSandbox | None) -> ProgramResult:
        """Run a program to its end, as `run_program`, in a sandbox as `start`."""
        return await run_program(launch, partial(self.start, confinement=confinement))

    async def open(
        self,
        launch: Launch,
        confinement: ProgramSandbox | None,
        feed_errors: Callable[[bytes], object],
        *,
        channel_variable: str = "",
    ) -> Program:
        """Start a program to talk to, as `Program.start`, in a sandbox as `start`."""
        return await Program.start(
            replace(launch, grace_seconds=SHELL_TERM_TIME.seconds),
            feed_errors,
            partial(self.start, confinement=confinement, is_server=True),
            channel_variable=channel_variable,
            end_seconds=MCP_STOP.seconds,
        )

    async def start(
        self, launch: Launch, confinement: ProgramSandbox | None, *, is_server: bool = False
    ) -> SandboxedProcess:
        """Start a program in a sandbox; without one if `confinement` is None, sandboxes are off,
        or none can be had.

        `is_server`: it answers requests, maybe as long as the session lasts, and is checked while
        it runs. Raises OSError when it can't be started, and its subclass SandboxUnavailable
        when a sandbox is required.
        """
        protect_own_memory(launch.environment)
        if confinement is not None and confinement.profile is None:
            return await self._start_with_commands(launch, confinement, is_server=is_server)
        if confinement is not None and self.is_sandboxed(entry=True):
            try:
                return await self._start_in_own_sandbox(launch, confinement, is_server=is_server)
            except SandboxUnavailable as error:
                self._check_optional(error)
                self.refusal_reason = str(error)
        if confinement is not None and self.refusal_reason:
            self._warn_once()
        return SandboxedProcess(await self._launcher.start(launch))

    def find_policy(self, launch: Launch, confinement: ProgramSandbox) -> SandboxPolicy:
        """Return the policy that a program was last started with, or else would be."""
        if confinement.profile is not None:
            return self._find_policy_maker(confinement.profile).last_policy
        return make_policy(
            self._workspace, self._make_grants(launch, confinement), confinement.rules
        )

    def list_own_launches(self, kind: str) -> list[tuple[Launch, ProgramSandbox]]:
        """Return the last launches of programs with a sandbox of their own.
        `kind`: the start of the name of their own folder.
        """
        return [
            (launch, ProgramSandbox(profile))
            for folder, (launch, profile) in self._launches.items()
            if folder.name.startswith(kind)
        ]

    def find_private_folders(self, profile: ProgramProfile) -> PrivatePlaces | None:
        """Return what only a program that runs in its own sandbox sees; None: there is none."""
        sandboxes = self._sandboxes_by_folder.get(profile.data_folder)
        policy = self._find_policy_maker(profile).last_policy
        sandbox = sandboxes.find_sandbox(policy) if sandboxes is not None else None
        if sandboxes is None or sandbox is None:
            return None
        own = Path(os.path.realpath(profile.data_folder))
        shown = [path for path in (*policy.writable, *policy.visible) if path != own]
        folders = {own: own}
        if sandbox.has_private_folders and sandboxes.temporary is not None:
            folders |= dict.fromkeys(TEMPORARY_FOLDERS, sandboxes.temporary.path)
        home = sandboxes.find_private_home(sandbox)
        if home is not None and policy.home is not None:
            folders[policy.home] = home
        return PrivatePlaces(folders, shown)

    async def _start_with_commands(
        self, launch: Launch, confinement: ProgramSandbox, *, is_server: bool
    ) -> SandboxedProcess:
        """Start a program in the sandbox of commands. It is ended when the work tree is closed."""
        shells = self._workspace.shells
        grants = self._make_grants(launch, confinement)
        sandbox = await self.enter_command_sandbox(grants, confinement.rules)
        if sandbox is None:
            return SandboxedProcess(await shells.launcher.start(launch))
        network = await connect_program(shells.sandboxes, sandbox, launch, confinement.client)
        return await self._start_in(
            sandbox, shells.sandboxes.git, network, launch, confinement, is_server=is_server
        )

    def _make_grants(self, launch: Launch, confinement: ProgramSandbox) -> SandboxGrants:
        """Return the paths that a program may read beyond commands, in whose sandbox it runs."""
        readable = (
            *(Path(os.path.realpath(folder)) for folder in confinement.readable),
            *self._list_unseen(launch, confinement),
        )
        return SandboxGrants(readable=readable) if readable else NO_GRANTS

    def _list_unseen(self, launch: Launch, confinement: ProgramSandbox) -> list[Path]:
        """Return the code that a program's command names and commands don't see."""
        workspace = self._workspace
        home = Path(workspace.environment.get("HOME") or "/nonexistent")
        policy = make_policy(workspace, NO_GRANTS, confinement.rules)
        keys = [Path(os.path.realpath(each)) for each in find_home_secrets(home)]
        paths = dict.fromkeys(
            Path(os.path.realpath(each)) for each in _find_named_code(workspace, launch)
        )
        return [
            path
            for path in paths
            if not policy.shows(path)
            and not is_below_any(path, keys)
            and not any(each.is_relative_to(path) for each in (*keys, *workspace.own_folders))
        ]

    async def _start_in_own_sandbox(
        self, launch: Launch, confinement: ProgramSandbox, *, is_server: bool
    ) -> SandboxedProcess:
        workspace, profile = self._workspace, confinement.profile
        if profile is None:
            raise ValueError("the program has no sandbox of its own")
        self._launches[profile.data_folder] = launch, profile
        sandboxes = self._sandboxes_by_folder.setdefault(
            profile.data_folder, Sandboxes(self._launcher)
        )
        limits = add_limits(workspace, confinement.rules or workspace.rules or NO_RULES)
        policy = self._find_policy_maker(profile).make_policy(limits)
        if Path(os.path.realpath(workspace.root)) in policy.writable:
            await workspace.shells.scan_work_tree(make_policy_input(workspace), workspace.sandbox)
        async with sandboxes.hold_sandbox(policy) as sandbox:
            network = await connect_program(sandboxes, sandbox, launch, _CLIENT)
            return await self._start_in(
                sandbox, sandboxes.git, network, launch, confinement, is_server=is_server
            )

    async def _start_in(
        self,
        sandbox: Sandbox,
        git: GitFolders,
        network: ProgramNetwork,
        launch: Launch,
        confinement: ProgramSandbox,
        *,
        is_server: bool,
    ) -> SandboxedProcess:
        """Start a program in a sandbox and its network,
        and check what the mounts of the sandbox can't keep.
        """
        workspace = self._workspace
        protected = await workspace.shells.protect(
            sandbox,
            git,
            locate_quarantine(workspace.scratch),
            make_watch(workspace, confinement.rules),
            is_lasting=is_server,
        )
        with ExitStack() as on_failure:
            on_failure.callback(protected.restore)
            process = await sandbox.starter.start(replace(launch, environment=network.environment))
            on_failure.pop_all()
        expected = workspace.read_log.expected_files
        started = SandboxedProcess(process, protected, expected, self._warn, network.list_refused)
        if is_server:
            started.watch()
        return started

    def _check_optional(self, error: SandboxUnavailable) -> None:
        """Raise SandboxUnavailable, which says so, if the configuration requires the
        sandbox that can't be had.
        """
        if self._workspace.sandbox.mode == "required":
            raise SandboxUnavailable(
                f"{error} The configuration requires one (sandbox)."
            ) from error

    def _warn_once(self) -> None:
        """Warn the user, the first time, that programs run without a sandbox
        since none can be had.
        """
        if not self._has_warned:
            self._has_warned = True
            self._warn(_REFUSAL_WARNING.format(self._programs))

    def _find_policy_maker(self, profile: ProgramProfile) -> ProfilePolicyMaker:
        if profile not in self._policy_makers:
            self._policy_makers[profile] = ProfilePolicyMaker(
                profile, make_policy_input(self._workspace), self._workspace.sandbox
            )
        return self._policy_makers[profile]

    @property
    def is_busy(self) -> bool:
        """Always False: these programs wait for requests."""
        return False

    async def rest(self) -> None:
        """End the sandboxes of programs that have ended."""
        left = [each for each in self._sandboxes_by_folder.values() if not await each.rest()]
        if not left and self._launcher.is_idle:
            await self._launcher.close()

    async def close(self) -> None:
        """End every program that was started, with its sandbox."""
        for sandboxes in self._sandboxes_by_folder.values():
            await sandboxes.close()
        await self._launcher.close()
